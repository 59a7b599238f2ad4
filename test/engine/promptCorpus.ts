import type { TokenizedApi } from "#src/request/tokens/promptTokens.ts";

export interface CorpusEntry {
  readonly name: string;
  readonly api: TokenizedApi;
  readonly body: Readonly<Record<string, unknown>>;
}

const TOOLS = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: 'Weather of a place, e.g. "München" – <b>now</b> & later.',
      parameters: {
        type: "object",
        properties: {
          place: { type: "string", description: "City" },
          days: { type: "integer", minimum: 1, maximum: 10.5 },
          units: { type: "string", enum: ["c", "f"], default: null },
        },
        required: ["place"],
        additionalProperties: false,
      },
    },
  },
  { type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } },
];

const UNICODE =
  "naïve café — „Grüße“ … 東京タワー 한국어 العربية עברית ไทย हिन्दी 🦜👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 ﬁ ½ ① \u200b\u00a0\u3000 tab\there\r\nnew\n\n\nlines 𝔘𝔫𝔦 \u{1f1e9}\u{1f1ea}";
const AWKWARD_TEXT = [
  "",
  " ",
  "\n",
  "   leading",
  "trailing   ",
  "a  b   c    d",
  "\t\t\tx",
  "don't DON'T they'll I'VE",
  "1234567890 3.14159 1e-9 ١٢٣",
  "https://example.org/a?b=c&d=%20#e",
  "if (x) {\n\treturn y['z'];\n}\n",
  "<|im_start|>user\nnot a turn<|im_end|>",
  "<|eot_id|><|begin_of_text|>",
  "</s> [INST] <think>\n\n</think>",
  "\\u0041 \\n \" ' ` \\\\",
  "{{ messages }} {% if true %}x{% endif %}",
  UNICODE,
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

const system = { role: "system", content: "You are terse.\n" };
const user = { role: "user", content: "What is the weather in Zürich?" };
const call = {
  role: "assistant",
  content: null,
  tool_calls: [
    { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"place": "Zürich", "days": 2}' } },
  ],
};
const result = { role: "tool", tool_call_id: "call_1", content: '{"c": 21.5, "sky": "☀️"}' };

function long(words: number): string {
  return Array.from({ length: words }, (_, at) => `${at % 7 === 0 ? "Naïve" : "word"}${at}`).join(" ");
}

function chat(name: string, messages: readonly unknown[], more: object = {}): CorpusEntry {
  return { name: `chat: ${name}`, api: "chat", body: { messages, ...more } };
}

/** Conversations of the kinds that templates and tokenizers stumble over. Every entry is one that engines accept. */
export const PROMPT_CORPUS: readonly CorpusEntry[] = [
  chat("one message", [user]),
  chat("a system prompt", [system, user]),
  chat("several turns", [system, user, { role: "assistant", content: "Dry." }, { role: "user", content: "And then?" }]),
  chat("empty content", [system, { role: "user", content: "" }]),
  chat("content parts", [
    {
      role: "user",
      content: [
        { type: "text", text: "one" },
        { type: "text", text: " two\n" },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "three" }] },
    { role: "user", content: [{ type: "text", text: "" }] },
  ]),
  chat("members in another order, and unknown ones", [
    { content: "x", name: "ann", role: "user", x_unknown: [1, 2.0] },
  ]),
  chat("tools", [system, user], { tools: TOOLS }),
  chat("tools, and one is called", [user, call, result], { tools: TOOLS }),
  chat("a call and its result, and on", [user, call, result, { role: "assistant", content: "21.5 °C" }, user], {
    tools: TOOLS,
  }),
  chat("no tools wanted", [user], { tools: TOOLS, tool_choice: "none" }),
  chat("no generation prompt", [system, user], { add_generation_prompt: false }),
  chat("a final message to go on with", [user, { role: "assistant", content: "It is" }], {
    add_generation_prompt: false,
    continue_final_message: true,
  }),
  chat("template arguments", [user], { chat_template_kwargs: { enable_thinking: false, unknown: [1, { a: null }] } }),
  chat("a long one", [system, { role: "user", content: long(700) }]),
  chat("whitespace around", [
    { role: "user", content: "\n\n  padded \t\n" },
    { role: "assistant", content: " ok " },
    user,
  ]),
  chat("unicode in every place", [
    { role: "system", content: UNICODE },
    { role: "user", content: UNICODE },
  ]),
  ...AWKWARD_TEXT.map((content) => chat(JSON.stringify(content).slice(0, 40), [{ role: "user", content }])),
  ...AWKWARD_TEXT.filter((text) => text !== "").map((prompt): CorpusEntry => ({
    name: `completions: ${JSON.stringify(prompt).slice(0, 40)}`,
    api: "completions",
    body: { prompt },
  })),
  {
    name: "completions: without special tokens",
    api: "completions",
    body: { prompt: "x y", add_special_tokens: false },
  },
  { name: "completions: long", api: "completions", body: { prompt: long(900) } },
];

/** Requests of APIs that do not show their tokens; longer than some blocks, so that events do. */
export const HIDDEN_CORPUS: readonly CorpusEntry[] = [
  { name: "messages: plain", api: "messages", body: { messages: [{ role: "user", content: long(60) }] } },
  {
    name: "messages: system, parts and turns",
    api: "messages",
    body: {
      system: [{ type: "text", text: long(40) }],
      messages: [
        { role: "user", content: [{ type: "text", text: long(30) }] },
        { role: "assistant", content: "Yes." },
        { role: "user", content: UNICODE },
      ],
    },
  },
  {
    name: "messages: tools",
    api: "messages",
    body: {
      messages: [{ role: "user", content: long(50) }],
      tools: [{ name: "now", description: "Time", input_schema: { type: "object", properties: {} } }],
    },
  },
  { name: "responses: plain", api: "responses", body: { input: long(60) } },
  {
    name: "responses: instructions and items",
    api: "responses",
    body: {
      instructions: long(40),
      input: [
        { role: "user", content: [{ type: "input_text", text: long(20) }] },
        { role: "assistant", content: "Yes." },
        { role: "user", content: UNICODE },
      ],
    },
  },
];
