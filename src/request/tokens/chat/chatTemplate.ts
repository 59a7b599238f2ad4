import { TemplateError } from "../jinja/templateError.ts";
import { Template } from "../jinja/template.ts";
import { rstrip, strip } from "../jinja/pythonText.ts";
import type { Dict, Value } from "../jinja/values.ts";
import { TokenFallback } from "../tokenFallback.ts";
import { dictOf, malformed } from "./body.ts";
import type { MessagesSettings } from "./messagesRequest.ts";
import { contentFormatOf } from "./contentFormat.ts";
import { type ContentFormat, toConversation } from "./conversation.ts";

/** A conversation to be rendered, whichever API it came by. */
export interface ChatPrompt {
  readonly messages: readonly Value[];
  /** Null: the request has no tools, which for a template is not the same as an empty list. */
  readonly tools: Value[] | null;
  readonly addGenerationPrompt: boolean;
  readonly continueFinalMessage: boolean;
  /** `documents`, `reasoning_effort` and the client's `chat_template_kwargs`; null counts as not given. */
  readonly arguments: ReadonlyMap<string, Value>;
}

export interface ChatTemplateOptions {
  /** By name, as the model's folder has them. */
  readonly templates: ReadonlyMap<string, string>;
  /** `bos_token`, `eos_token` and the like: variables of every template. */
  readonly specialTokens: ReadonlyMap<string, string>;
  /** `--chat-template-content-format`; null: found out from the template. */
  readonly contentFormat?: ContentFormat | null;
  /** `--default-chat-template-kwargs`. */
  readonly defaultArguments?: ReadonlyMap<string, Value>;
}

/** Arguments that transformers takes for itself instead of handing them to the template. */
const NOT_FOR_TEMPLATES: ReadonlySet<string> = new Set(
  (
    "conversation messages chat_template tokenize padding truncation max_length return_tensors return_dict " +
    "return_assistant_tokens_mask tokenizer_kwargs"
  ).split(" "),
);
const EFFORTS = ["low", "medium", "high", "xhigh", "max"];
const PROBE: Omit<ChatPrompt, "arguments"> = {
  messages: [messageOf("user", "Hi")],
  tools: null,
  addGenerationPrompt: true,
  continueFinalMessage: false,
};
const CONTINUED = "CONTINUE_FINAL_MESSAGE_TAG ";

interface Compiled {
  readonly template: Template;
  readonly contentFormat: ContentFormat;
}

/** A model's chat template: renders conversations to text as vLLM does through transformers. */
export class ChatTemplate {
  readonly #options: ChatTemplateOptions;
  readonly #compiled = new Map<string, Compiled>();
  #messagesSettings: MessagesSettings | null = null;

  constructor(options: ChatTemplateOptions) {
    this.#options = options;
  }

  /** @throws {TokenFallback} with the reason */
  render(prompt: ChatPrompt, now: Date): string {
    const { template, contentFormat } = this.#templateFor(prompt.tools !== null);
    const messages = this.#roles(toConversation(prompt.messages, contentFormat), template);
    if (messages.length === 0) throw malformed("there are no messages");
    const continued = prompt.continueFinalMessage ? openFinalMessage(messages, template) : null;
    if (continued !== null && prompt.addGenerationPrompt)
      throw malformed("a final message cannot be continued and answered");
    const text = run(template, this.#variables(prompt, messages), now);
    return continued === null ? text : cutAtContinuation(text, continued);
  }

  /** What the messages API has to know of the template. Tried out once, as vLLM does. */
  messagesSettings(now: Date): MessagesSettings {
    this.#messagesSettings ??= {
      mergesSystemMessages: this.#refusesLaterSystemMessages(now),
      disabledThinkingEffort: this.#disabledThinkingEffort(now),
    };
    return this.#messagesSettings;
  }

  #refusesLaterSystemMessages(now: Date): boolean {
    const messages = ["system", "user", "system", "user"].map((role) => messageOf(role, "t"));
    return [false, true].some((withTools) => {
      try {
        const { template } = this.#templateFor(withTools);
        run(
          template,
          new Map<string, Value>([
            ["messages", messages],
            ["add_generation_prompt", false],
          ]),
          now,
        );
        return false;
      } catch {
        return true;
      }
    });
  }

  /** "none", or "low" where the template refuses that or makes nothing else of it than of some effort. */
  #disabledThinkingEffort(now: Date): string {
    const rendered = (effort: string): string | null => {
      const given = new Map<string, Value>([
        ["reasoning_effort", effort],
        ["enable_thinking", effort !== "none"],
      ]);
      try {
        return this.render({ ...PROBE, arguments: given }, now);
      } catch {
        return null;
      }
    };
    const none = rendered("none");
    return none === null || EFFORTS.some((effort) => rendered(effort) === none) ? "low" : "none";
  }

  #templateFor(withTools: boolean): Compiled {
    const { templates } = this.#options;
    const name = withTools && templates.has("tool_use") ? "tool_use" : "default";
    const known = this.#compiled.get(name);
    if (known !== undefined) return known;
    const source = templates.get(name);
    if (source === undefined) throw new TokenFallback("no_template");
    const template = fallingBack(() => new Template(source));
    const contentFormat = this.#options.contentFormat ?? contentFormatOf(template.statements);
    const compiled = { template, contentFormat };
    this.#compiled.set(name, compiled);
    return compiled;
  }

  /** A template that does not know the role `developer` gets `system` instead, and all of that in one message. */
  #roles(messages: Dict[], { source }: Template): Dict[] {
    if (source.includes('"developer"') || source.includes("'developer'")) return messages;
    if (!messages.some((message) => message.get("role") === "developer")) return messages;
    const converted = messages.map((message) => {
      if (message.get("role") !== "developer") return message;
      const copy = new Map(message);
      copy.set("role", "system");
      copy.delete("tools");
      return copy;
    });
    return consolidated(converted);
  }

  #variables(prompt: ChatPrompt, messages: Dict[]): Map<string, Value> {
    const { specialTokens, defaultArguments } = this.#options;
    const given = new Map<string, Value>(defaultArguments ?? []);
    if (prompt.tools !== null) given.set("tools", prompt.tools);
    // What is null or "auto" counts as not given, as in vLLM.
    for (const [name, value] of prompt.arguments) if (value !== null && value !== "auto") given.set(name, value);
    for (const name of given.keys())
      if (NOT_FOR_TEMPLATES.has(name)) throw new TokenFallback("template_arguments", name);
    return new Map<string, Value>([
      ["tools", null],
      ["documents", null],
      ...specialTokens,
      ...given,
      ["messages", messages],
      ["add_generation_prompt", prompt.addGenerationPrompt],
    ]);
  }
}

function run(template: Template, variables: ReadonlyMap<string, Value>, now: Date): string {
  return fallingBack(() => template.render(variables, now));
}

function fallingBack<T>(attempt: () => T): T {
  try {
    return attempt();
  } catch (error) {
    if (error instanceof TemplateError) throw new TokenFallback(`template_${error.failure}`, error.message);
    throw error;
  }
}

function messageOf(role: string, content: string): Dict {
  return dictOf([
    ["role", role],
    ["content", content],
  ]);
}

/** All system messages as one, the first of the conversation. */
function consolidated(messages: Dict[]): Dict[] {
  const system = messages.filter((message) => message.get("role") === "system");
  if (system.length === 0 || (system.length === 1 && messages[0] === system[0])) return messages;
  const texts = system.map((message) => contentText(message.get("content"))).filter((text) => text !== "");
  const merged = messageOf("system", texts.join("\n\n"));
  return [merged, ...messages.filter((message) => message.get("role") !== "system")];
}

function contentText(content: Value): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part) => (part instanceof Map ? part.get("text") : part))
    .filter((text) => typeof text === "string")
    .join("\n");
}

/** Marks where the final message ends, to be found in the rendered text; returns the message's own text. */
function openFinalMessage(messages: Dict[], { source }: Template): string {
  const last = new Map(messages.at(-1));
  messages.splice(-1, 1, last);
  const content = last.get("content") ?? null;
  if (content === null || !source.includes("content")) throw malformed("there is no final message to continue");
  if (typeof content === "string") {
    last.set("content", content + CONTINUED);
    return content;
  }
  const parts = Array.isArray(content) ? [...content] : [];
  const at = parts.findLastIndex((part) => part instanceof Map && part.has("text"));
  if (at < 0) throw malformed("there is no text to continue in the final message");
  const part = new Map(parts[at] as Dict);
  const text = part.get("text");
  if (typeof text !== "string") throw malformed("there is no text to continue in the final message");
  part.set("text", text + CONTINUED);
  parts[at] = part;
  last.set("content", parts);
  return text;
}

function cutAtContinuation(rendered: string, message: string): string {
  const mark = strip(CONTINUED);
  const at = rendered.lastIndexOf(mark);
  if (at < 0 || !rendered.includes(strip(message))) throw malformed("the template drops the final message");
  const cut = rendered.slice(0, at);
  // Without the blank the template has trimmed the message, and its own trailing space goes too.
  return rendered.startsWith(CONTINUED, at) ? cut : rstrip(cut);
}
