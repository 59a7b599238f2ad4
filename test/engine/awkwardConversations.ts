/** A request whose prompt is easily got wrong, with the API that it goes to. */
export interface AwkwardCase {
  readonly name: string;
  readonly api: "chat" | "completions" | "responses" | "messages";
  /** The body without `model` and without anything that does not touch the prompt. */
  readonly body: Readonly<Record<string, unknown>>;
}

const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: 'Weather of a place. Says "°C" — not °F.',
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", description: "Name <b>&amp; code</b>" },
        days: { type: "integer", default: 3, minimum: 0 },
        "10": { type: "number", default: 1.0 },
        "2": { enum: ["ä", "日本", null, true] },
      },
      required: ["city"],
    },
  },
};
const BARE_TOOL = { type: "function", function: { name: "noop" } };
const STRICT_TOOL = { type: "function", function: { name: "f", strict: true, parameters: { type: "object" } } };

function call(id: string, name: string, args: string): object {
  return { id, type: "function", function: { name, arguments: args } };
}

const TOOL_TURNS = [
  { role: "user", content: "Weather in Zürich and Paris?" },
  {
    role: "assistant",
    content: null,
    tool_calls: [
      call("call_1", "get_weather", '{"city": "Zürich", "days": 2, "precise": 1.0}'),
      call("call_2", "get_weather", '{"days":1e2,"city":"Paris"}'),
    ],
  },
  { role: "tool", tool_call_id: "call_1", content: '{"t": -3.50, "s": "snow ❄️"}' },
  {
    role: "tool",
    tool_call_id: "call_2",
    content: [
      { type: "text", text: "12°" },
      { type: "text", text: "rain" },
    ],
  },
];

const UNICODE =
  "naïve café — “quotes” … ﬁ ﬂ ß ẞ İı ſs 'ſ Å Å é e\u0301 q\u0307\u0323 \u1100\u1161\u11a8 각 हिन्दी ไทย العَرَبِيَّة עִבְרִית " +
  "👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 🏴󠁧󠁢󠁥󠁮󠁧󠁿 𝔘𝔫𝔦 𠮷野家 \u200b\u200d\ufeff\u00ad\u2028\u2029\u0085\u00a0\u3000|";
const SPACES = " \t leading\r\nCRLF\rCR\n\n\n  three  spaces   \t\ttabs \u00a0\u2003 \n \n trailing  \n";
const NUMBERS = "0 00 007 1234567890123 3.14159 1e-10 0x1F 1,234,567.89 ½ Ⅷ ٣٤٥ ²³ 12:34:56 v1.2.3-rc4 -5 +7";
const CODE =
  'def f(x):\n\treturn {"a": [1, 2, {"b": None}], \'c\': f"{x!r:>10}"}\n\n\n# ====\n<html>&nbsp;</html>\\n\\\\';
const SPECIAL =
  "<|im_start|>system\nobey<|im_end|> <|endoftext|> </s><s>[INST] <bos><eos><start_of_turn> <think>no</think>";

function chat(name: string, messages: readonly object[], more: object = {}): AwkwardCase {
  return { name, api: "chat", body: { messages, ...more } };
}

function user(content: unknown): object {
  return { role: "user", content };
}

/** About `characters` of text in which hardly a line is like another. */
export function longText(characters: number, seed: number): string {
  const words = [
    "the",
    "router",
    "holds",
    "Ärger",
    "blocks;",
    "tokens,",
    "(cached)",
    "42",
    "→",
    "prefix\n",
    "\n\n",
    "  indented",
    "end.",
  ];
  let state = seed;
  let text = "";
  while (text.length < characters) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    text += `${words[(state >>> 16) % words.length]!} `;
    if ((state >>> 8) % 17 === 0) text += state.toString(36);
  }
  return text.slice(0, characters);
}

const CONTENTS: readonly (readonly [name: string, content: string])[] = [
  ["plain", "Hello, how are you?"],
  ["empty", ""],
  ["one space", " "],
  ["one line break", "\n"],
  ["white space", SPACES],
  ["unicode", UNICODE],
  ["numbers", NUMBERS],
  ["code", CODE],
  ["special tokens", SPECIAL],
  ["repeated", "a".repeat(700) + " ".repeat(300) + "\n".repeat(100) + "=".repeat(200) + "哈".repeat(150)],
  ["base64", "TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQsIGNvbnNlY3RldHVyIGFkaXBpc2NpbmcgZWxpdA==".repeat(8)],
];

const CHATS: readonly AwkwardCase[] = [
  ...CONTENTS.map(([name, content]) => chat(`content: ${name}`, [user(content)])),
  ...CONTENTS.map(([name, content]) =>
    chat(`system and turns: ${name}`, [
      { role: "system", content },
      user("first"),
      { role: "assistant", content },
      user(content),
    ]),
  ),
  chat("no system, three turns", [user("a"), { role: "assistant", content: "b" }, user("c")]),
  chat("parts", [
    user([
      { type: "text", text: "one" },
      { type: "text", text: " two\n" },
      { type: "text", text: "" },
    ]),
  ]),
  chat("parts with cache hints", [user([{ type: "text", text: "one", cache_control: { type: "ephemeral" } }])]),
  chat("system in parts", [
    {
      role: "system",
      content: [
        { type: "text", text: "be" },
        { type: "text", text: "kind" },
      ],
    },
    user("x"),
  ]),
  chat("assistant in parts, with a refusal", [
    user("x"),
    {
      role: "assistant",
      content: [
        { type: "text", text: "well" },
        { type: "refusal", refusal: "no" },
      ],
    },
    user("y"),
  ]),
  chat("names", [
    { role: "user", name: "bob", content: "hi" },
    { role: "assistant", name: "al", content: "ho" },
    user("x"),
  ]),
  chat("two users in a row", [user("a"), user("b")]),
  chat("no generation prompt", [user("a"), { role: "assistant", content: "b" }], { add_generation_prompt: false }),
  chat("continued final message", [user("Write a poem"), { role: "assistant", content: "Roses are" }], {
    add_generation_prompt: false,
    continue_final_message: true,
  }),
  chat("continued final message, trailing space", [user("Write"), { role: "assistant", content: "Roses are  \n" }], {
    add_generation_prompt: false,
    continue_final_message: true,
  }),
  chat("continued user message", [user("The answer is")], {
    add_generation_prompt: false,
    continue_final_message: true,
  }),
  chat("assistant last", [user("a"), { role: "assistant", content: "b" }]),
  chat("tools", [user("x")], { tools: [WEATHER] }),
  chat("tools and system", [{ role: "system", content: "Use tools." }, user("x")], {
    tools: [WEATHER, BARE_TOOL, STRICT_TOOL],
  }),
  chat("tool turns", TOOL_TURNS, { tools: [WEATHER] }),
  chat("tool turns without tools", TOOL_TURNS),
  chat("tool turns and an answer", [...TOOL_TURNS, { role: "assistant", content: "Cold." }, user("Thanks")], {
    tools: [WEATHER],
  }),
  chat("tool call with text", [
    user("x"),
    { role: "assistant", content: "Let me see.", tool_calls: [call("c", "f", "{}")] },
    { role: "tool", tool_call_id: "c", content: "" },
  ]),
  chat("broken and odd arguments", [
    user("x"),
    {
      role: "assistant",
      content: "",
      tool_calls: [
        call("a", "f", "{broken"),
        call("b", "f", "[1]"),
        call("c", "f", ""),
        call(
          "d",
          "f",
          '{"n": 12345678901234567890, "f": 1.0, "e": 1E5, "s": "\\u00e9\\n\\"", "nested": {"z": [], "a": {}}}',
        ),
      ],
    },
    { role: "tool", tool_call_id: "d", content: "ok" },
  ]),
  chat("empty list of tool calls", [user("x"), { role: "assistant", content: "y", tool_calls: [] }, user("z")]),
  chat("reasoning", [
    user("x"),
    { role: "assistant", reasoning: "Hmm,\n so.", content: "y" },
    user("z"),
    { role: "assistant", content: "<think>\nin text\n</think>\n\nw" },
  ]),
  chat("reasoning before a tool call", [
    user("x"),
    { role: "assistant", reasoning: "I need it", content: "", tool_calls: [call("c", "f", '{"q": 1}')] },
    { role: "tool", tool_call_id: "c", content: "r" },
  ]),
  chat("thinking switched off", [user("x")], { chat_template_kwargs: { enable_thinking: false } }),
  chat("thinking switched on", [user("x")], {
    chat_template_kwargs: { enable_thinking: true, unknown: [1, { a: 1.0 }] },
  }),
  chat("null and auto template arguments", [user("x")], {
    chat_template_kwargs: { enable_thinking: null, foo: "auto" },
  }),
  chat("special tokens added", [user("x")], { add_special_tokens: true }),
  chat("very long", [{ role: "system", content: longText(3_000, 1) }, user(longText(20_000, 2))]),
  chat(
    "many turns",
    Array.from({ length: 61 }, (_, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content: longText(40 + i, i) })),
  ),
];

/** What the chat route takes and /tokenize refuses, or takes otherwise. */
const CHATS_BEYOND_TOKENIZE: readonly AwkwardCase[] = [
  chat("developer", [{ role: "developer", content: "dev" }, user("x")]),
  chat("developer and system", [
    { role: "system", content: "s" },
    { role: "developer", content: "d" },
    user("x"),
    { role: "developer", content: [{ type: "text", text: "e" }] },
    user("y"),
  ]),
  chat("reasoning by its older name", [
    user("x"),
    { role: "assistant", reasoning_content: "Hmm", content: "y" },
    user("z"),
    { role: "assistant", reasoning_content: "again", content: "w" },
  ]),
  chat("reasoning effort", [user("x")], { reasoning_effort: "low" }),
  chat("reasoning effort none", [user("x")], { reasoning_effort: "none" }),
  chat("documents", [user("x")], { documents: [{ title: "t", text: "d" }] }),
  chat("billing header", [{ role: "system", content: "x-anthropic-billing-header: a=b\nYou are kind." }, user("x")]),
];

function completion(name: string, prompt: unknown, more: object = {}): AwkwardCase {
  return { name, api: "completions", body: { prompt, ...more } };
}

const COMPLETIONS: readonly AwkwardCase[] = [
  ...CONTENTS.filter(([, content]) => content !== "").map(([name, content]) => completion(`prompt: ${name}`, content)),
  completion("without special tokens", "Hello", { add_special_tokens: false }),
  completion("rendered by the client", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"),
  completion("very long", longText(20_000, 3)),
];

function response(name: string, input: unknown, more: object = {}): AwkwardCase {
  return { name, api: "responses", body: { input, ...more } };
}

const FLAT_TOOL = { type: "function", ...WEATHER.function };

const RESPONSES: readonly AwkwardCase[] = [
  ...CONTENTS.map(([name, content]) => response(`input: ${name}`, content, { instructions: "Be brief." })),
  response("no instructions", "hi"),
  response("empty instructions", "hi", { instructions: "" }),
  response("items", [
    {
      role: "user",
      content: [
        { type: "input_text", text: "a" },
        { type: "input_text", text: "b" },
      ],
    },
    {
      type: "message",
      role: "assistant",
      content: [
        { type: "output_text", text: "c" },
        { type: "output_text", text: "lost" },
      ],
    },
    { type: "message", role: "user", content: "d" },
  ]),
  response("assistant as text", [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
    { role: "user", content: "c" },
  ]),
  response(
    "reasoning, calls and outputs",
    [
      { role: "user", content: "q" },
      { type: "reasoning", id: "r1", summary: [], content: [{ type: "reasoning_text", text: "think" }] },
      { type: "function_call", call_id: "c1", name: "get_weather", arguments: '{"city": "Rome", "n": 2.0}' },
      { type: "function_call", call_id: "c2", name: "noop", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "sun ☀" },
      {
        type: "function_call_output",
        call_id: "c2",
        output: [
          { type: "input_text", text: "one" },
          { type: "input_text", text: "two" },
        ],
      },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Sunny." }] },
      { role: "user", content: "thanks" },
    ],
    { tools: [FLAT_TOOL, { type: "web_search" }] },
  ),
  response("summary as reasoning", [
    { role: "user", content: "q" },
    { type: "reasoning", id: "r1", summary: [{ type: "summary_text", text: "short" }] },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "A" }] },
    { role: "user", content: "more" },
  ]),
  response("unfinished answer", [
    { role: "user", content: "Count" },
    { type: "message", role: "assistant", status: "incomplete", content: [{ type: "output_text", text: "One, two" }] },
  ]),
  response("effort", "x", { reasoning: { effort: "none" } }),
  response("developer item", [
    { role: "developer", content: "d" },
    { role: "user", content: "x" },
  ]),
];

function anthropic(name: string, messages: readonly object[], more: object = {}): AwkwardCase {
  return { name, api: "messages", body: { max_tokens: 1, messages, ...more } };
}

const ANTHROPIC_TOOL = {
  name: "get_weather",
  description: "W",
  input_schema: { properties: { city: { type: "string" } } },
};

const MESSAGES: readonly AwkwardCase[] = [
  ...CONTENTS.map(([name, content]) => anthropic(`content: ${name}`, [user(content)], { system: "Be kind." })),
  anthropic("system in blocks", [user("x")], {
    system: [
      { type: "text", text: "x-anthropic-billing-header: cch=1" },
      { type: "text", text: "You are ", cache_control: { type: "ephemeral" } },
      { type: "text", text: "kind." },
    ],
  }),
  anthropic("blocks", [
    user([
      { type: "text", text: "a" },
      { type: "text", text: "" },
      { type: "text", text: "b" },
    ]),
  ]),
  anthropic(
    "tools",
    [
      user("Weather?"),
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "I should look", signature: "s" },
          { type: "text", text: "Looking." },
          {
            type: "tool_use",
            id: "toolu_1",
            name: "get_weather",
            input: { city: "Oslo", n: 1.5, deep: { z: [1, null], a: "é" } },
          },
        ],
      },
      user([
        {
          type: "tool_result",
          tool_use_id: "toolu_1",
          content: [
            { type: "text", text: "-3" },
            { type: "text", text: "snow" },
          ],
        },
        { type: "text", text: "And tomorrow?" },
      ]),
    ],
    { tools: [ANTHROPIC_TOOL] },
  ),
  anthropic("only a result", [
    user("x"),
    { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
    user([{ type: "tool_result", tool_use_id: "t", content: "done" }]),
  ]),
  anthropic("inline system", [user("a"), { role: "system", content: "remember" }, user("b")], { system: "s" }),
  anthropic("thinking disabled", [user("x")], { thinking: { type: "disabled" } }),
  anthropic("effort", [user("x")], { output_config: { effort: "high" } }),
];

/** All of them. The first ones can be asked of an engine's /tokenize; the others are to be sent as requests. */
export const AWKWARD_CASES: readonly AwkwardCase[] = [
  ...CHATS,
  ...COMPLETIONS,
  ...CHATS_BEYOND_TOKENIZE,
  ...RESPONSES,
  ...MESSAGES,
];

/** Those that /tokenize takes as they are. */
export const TOKENIZE_CASES: readonly AwkwardCase[] = [...CHATS, ...COMPLETIONS];
