import { type Dict, typeName, type Value } from "../jinja/values.ts";
import { parsePythonJson, PythonJsonError } from "../pythonJson.ts";
import { TokenFallback } from "../tokenFallback.ts";
import { asDict, malformed, ordered } from "./body.ts";

/*
 * Messages as clients send them become messages as chat templates get them, in the manner of vLLM: content parts are
 * joined or wrapped, arguments of tool calls are objects, what templates do not know is left out.
 */

/** How a template wants content that came in parts: joined to one text, or as parts. */
export type ContentFormat = "string" | "openai";

const TEXT_PARTS: ReadonlyMap<string, string> = new Map([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["refusal", "refusal"],
  ["thinking", "thinking"],
]);
/** Members of parts that mean something to the engine; the others are handed to the template. */
const KNOWN_PART_MEMBERS: ReadonlySet<string> = new Set(
  (
    "text type refusal thinking closed name uuid data prompt_cache_breakpoint file image_url image_pil image_embeds " +
    "audio_url audio_embeds input_audio video_url video_embeds"
  ).split(" "),
);
const BILLING_HEADER = "x-anthropic-billing-header";

export function toConversation(messages: readonly Value[], format: ContentFormat): Dict[] {
  return messages.map((message) => {
    const conversed = toMessage(asDict(message, "a message"), format);
    finishToolCalls(conversed);
    return conversed;
  });
}

function toMessage(message: Dict, format: ContentFormat): Dict {
  const role = message.get("role");
  if (typeof role !== "string") throw malformed("a message has no role");
  let parts = toParts(message.get("content") ?? null);
  if (role === "system") parts = withoutBillingHeader(parts);
  const texts = parts.flatMap((part) => readPart(part, format));
  const result: Dict = new Map<Value, Value>([
    ["role", role],
    ["content", format === "openai" ? texts : joined(texts)],
  ]);
  if (role === "assistant") addAssistantMembers(message, result);
  else if (role === "tool") addToolMembers(message, result, texts);
  for (const key of ["name", "task"]) {
    const value = message.get(key);
    if (typeof value === "string") result.set(key, value);
  }
  if (role === "developer") result.set("tools", message.get("tools") ?? null);
  return result;
}

function joined(texts: readonly Value[]): string {
  return texts.filter((text) => typeof text === "string").join("\n");
}

function toParts(content: Value): readonly Value[] {
  if (content === null) return [];
  if (typeof content === "string")
    return [
      new Map([
        ["type", "text"],
        ["text", content],
      ]),
    ];
  if (!Array.isArray(content)) throw malformed("content is neither text nor a list");
  return content;
}

/** The part as its text, or wrapped; nothing for what the engine skips. @throws {TokenFallback} for media */
function readPart(part: Value, format: ContentFormat): readonly Value[] {
  if (typeof part === "string")
    return [
      format === "openai"
        ? new Map([
            ["type", "text"],
            ["text", part],
          ])
        : part,
    ];
  const members = asDict(part, "a content part");
  const type = members.get("type");
  const textMember =
    typeof type === "string" && (members.get("uuid") ?? null) === null ? TEXT_PARTS.get(type) : undefined;
  if (textMember !== undefined) {
    const text = members.get(textMember) ?? null;
    if (text === null && (type === "text" || type === "refusal")) return [];
    if (typeof text !== "string") throw malformed(`a text part has no text but a ${typeName(text)}`);
    // An empty text is no part, so no line of its own.
    if (format === "string") return text === "" ? [] : [text];
    const extras = [...members].filter(([key]) => typeof key === "string" && !KNOWN_PART_MEMBERS.has(key));
    return [new Map<Value, Value>([["type", "text"], ["text", text], ...extras])];
  }
  if (type === "tool_reference") {
    const name = members.get("name") ?? null;
    return [
      format === "openai"
        ? new Map<Value, Value>([
            ["type", type],
            ["name", name],
          ])
        : name,
    ];
  }
  throw new TokenFallback("media");
}

/** A line that a client of Anthropic's API adds, other in every request; vLLM drops it. */
function withoutBillingHeader(parts: readonly Value[]): readonly Value[] {
  return parts.flatMap((part): readonly Value[] => {
    const inDict = part instanceof Map && part.get("type") === "text";
    const text = inDict ? part.get("text") : part;
    if (typeof text !== "string" || !text.startsWith(BILLING_HEADER)) return [part];
    const lineEnd = text.indexOf("\n");
    const rest = lineEnd < 0 ? "" : text.slice(lineEnd + 1);
    if (rest === "") return [];
    return [inDict ? new Map<Value, Value>([...part, ["text", rest]]) : rest];
  });
}

function addAssistantMembers(message: Dict, result: Dict): void {
  const toolCalls = message.get("tool_calls") ?? null;
  if (toolCalls !== null) result.set("tool_calls", toolCalls);
  const reasoning = message.get("reasoning") ?? null;
  if (reasoning !== null) {
    result.set("reasoning", reasoning);
    result.set("reasoning_content", reasoning);
  }
}

/** Templates take a tool's answer as one text; references to tools stay parts. */
function addToolMembers(message: Dict, result: Dict, texts: readonly Value[]): void {
  if (message.has("tool_call_id")) result.set("tool_call_id", message.get("tool_call_id"));
  if (!Array.isArray(result.get("content"))) return;
  const parts = texts.map((part) => asDict(part, "a content part"));
  if (parts.every((part) => part.get("type") === "text"))
    result.set("content", joined(parts.map((part) => part.get("text"))));
}

function finishToolCalls(message: Dict): void {
  const toolCalls = message.get("tool_calls");
  if (!Array.isArray(toolCalls)) return;
  if (toolCalls.length === 0) {
    message.delete("tool_calls");
    return;
  }
  message.set(
    "tool_calls",
    toolCalls.map((call) => {
      const members = asDict(call, "a tool call");
      const { fn, type } = { fn: members.get("function"), type: members.get("type") ?? "function" };
      if (type !== "function" || !(fn instanceof Map)) throw malformed("a tool call is not of type 'function'");
      const finished = new Map(fn);
      finished.set("arguments", toArguments(fn.get("arguments") ?? null));
      return new Map<Value, Value>([...members, ["function", finished]]);
    }),
  );
}

/** Arguments are an object; whatever is none, or no JSON, counts as none. */
function toArguments(value: Value): Dict {
  if (value instanceof Map) return value;
  if (typeof value !== "string") return new Map();
  try {
    const parsed = parsePythonJson(value);
    return parsed instanceof Map ? parsed : new Map();
  } catch (error) {
    if (error instanceof PythonJsonError) return new Map();
    throw error;
  }
}

/** The order in which vLLM's validation leaves the members of a tool call. */
export function orderedToolCall(call: Value): Value {
  if (!(call instanceof Map)) return call;
  const fn = call.get("function");
  const copy =
    fn instanceof Map ? new Map<Value, Value>([...call, ["function", ordered(fn, ["arguments", "name"])]]) : call;
  return ordered(copy, ["id", "function", "type"]);
}
