import { textOf } from "../jinja/toText.ts";
import type { Dict, Value } from "../jinja/values.ts";
import { TokenFallback } from "../tokenFallback.ts";
import { asDict, dictOf, listOf, malformed, textOrNull } from "./body.ts";
import { refuseClientTemplate, templateArguments } from "./chatRequest.ts";
import type { ChatPrompt } from "./chatTemplate.ts";
import { orderedToolCall } from "./conversation.ts";
import { functionDefinition } from "./tools.ts";

const BILLING_HEADER = "x-anthropic-billing-header";

export interface MessagesSettings {
  /** The template refuses system messages behind the first: all are merged into it. */
  readonly mergesSystemMessages: boolean;
  /** `reasoning_effort` that switches thinking off. */
  readonly disabledThinkingEffort: string;
}

/** Reads a body of Anthropic's messages API, which vLLM turns into a chat request. @throws {TokenFallback} */
export function readMessagesRequest(body: Dict, settings: MessagesSettings): ChatPrompt {
  refuseClientTemplate(body);
  const given = (listOf(body, "messages") ?? []).map((message) => asDict(message, "a message"));
  const messages: Dict[] = [];
  const system = body.get("system") ?? null;
  const texts = typeof system === "string" ? [system].filter((text) => text !== "") : systemText(system);
  if (settings.mergesSystemMessages) {
    for (const message of given)
      if (message.get("role") === "system") texts.push(...systemText(message.get("content") ?? null));
  }
  if (texts.length > 0)
    messages.push(
      dictOf([
        ["role", "system"],
        ["content", texts.join("")],
      ]),
    );
  for (const message of given) addMessage(message, messages, settings);
  return {
    messages,
    tools: messagesTools(body),
    addGenerationPrompt: true,
    continueFinalMessage: false,
    arguments: templateArguments(body, [], reasoningEffort(body, settings)),
  };
}

/** The texts of a system message, without the header by which some clients are billed. */
function systemText(content: Value): string[] {
  if (content === null) return [];
  const blocks =
    typeof content === "string"
      ? [
          dictOf([
            ["type", "text"],
            ["text", content],
          ]),
        ]
      : content;
  if (!Array.isArray(blocks)) throw malformed("system is neither text nor a list");
  return blocks.flatMap((block) => {
    const members = asDict(block, "a content block");
    const text = members.get("type") === "text" ? textOrNull(members, "text") : null;
    return text === null || text === "" || text.startsWith(BILLING_HEADER) ? [] : [text];
  });
}

function addMessage(message: Dict, messages: Dict[], settings: MessagesSettings): void {
  const role = message.get("role");
  const content = message.get("content") ?? null;
  if (role === "system") {
    const text = settings.mergesSystemMessages ? "" : systemText(content).join("");
    if (text !== "")
      messages.push(
        dictOf([
          ["role", "system"],
          ["content", text],
        ]),
      );
    return;
  }
  if (role !== "user" && role !== "assistant") throw malformed("a message has no role of this API");
  const converted = dictOf([["role", role]]);
  if (typeof content === "string") converted.set("content", content);
  else if (Array.isArray(content)) addBlocks(content, converted, messages);
  else throw malformed("content is neither text nor a list");
  if (role === "assistant" || converted.has("content")) messages.push(converted);
}

/** Results of tools become messages of their own, before the one that they came in. */
function addBlocks(blocks: readonly Value[], message: Dict, messages: Dict[]): void {
  const texts: Dict[] = [];
  const calls: Value[] = [];
  const thoughts: string[] = [];
  for (const block of blocks) {
    const members = asDict(block, "a content block");
    const type = members.get("type");
    if (type === "text") {
      const text = textOrNull(members, "text");
      if (text)
        texts.push(
          dictOf([
            ["type", "text"],
            ["text", text],
          ]),
        );
    } else if (type === "thinking") thoughts.push(textOrNull(members, "thinking") ?? "");
    else if (type === "tool_use") calls.push(toolCall(members));
    else if (type === "tool_result") addToolResult(members, message, messages);
    else if (type === "image") throw new TokenFallback("media");
    else if (type !== "redacted_thinking" && type !== "tool_reference")
      throw new TokenFallback("unsupported_item", textOf(type));
  }
  if (thoughts.length > 0) message.set("reasoning", thoughts.join(""));
  if (calls.length > 0) message.set("tool_calls", calls);
  const [only] = texts;
  if (only !== undefined) message.set("content", texts.length === 1 ? only.get("text") : texts);
}

function toolCall(members: Dict): Value {
  const id = textOrNull(members, "id");
  // Without one the engine makes an id of the time.
  if (!id) throw new TokenFallback("unsupported_item", "a tool_use without an id");
  const fn = dictOf([
    ["name", textOrNull(members, "name") ?? ""],
    ["arguments", members.get("input") ?? new Map()],
  ]);
  return orderedToolCall(
    dictOf([
      ["id", id],
      ["type", "function"],
      ["function", fn],
    ]),
  );
}

function addToolResult(members: Dict, message: Dict, messages: Dict[]): void {
  if (message.get("role") !== "user") throw new TokenFallback("unsupported_item", "a tool_result of the assistant");
  const id = textOrNull(members, "tool_use_id") ?? "";
  const content = members.get("content") ?? null;
  const items = Array.isArray(content) ? content.map((item) => asDict(item, "a content block")) : [];
  const texts = items.filter((item) => item.get("type") === "text").map((item) => textOrNull(item, "text") ?? "");
  const references = items.filter((item) => item.get("type") === "tool_reference");
  if (items.some((item) => item.get("type") === "image")) throw new TokenFallback("media");
  const answer = (value: Value): Dict =>
    dictOf([
      ["role", "tool"],
      ["tool_call_id", id],
      ["content", value],
    ]);
  messages.push(answer(typeof content === "string" ? content : texts.join("\n")));
  const named = references.flatMap((item): Dict[] => {
    const name = textOrNull(item, "tool_name") ?? textOrNull(item, "name");
    return name
      ? [
          dictOf([
            ["type", "tool_reference"],
            ["name", name],
          ]),
        ]
      : [];
  });
  if (named.length > 0) messages.push(answer(named));
}

function reasoningEffort(body: Dict, settings: MessagesSettings): Value {
  const thinking = body.get("thinking") ?? null;
  if (thinking !== null && asDict(thinking, "thinking").get("type") === "disabled")
    return settings.disabledThinkingEffort;
  const output = body.get("output_config") ?? null;
  return output === null ? null : (asDict(output, "output_config").get("effort") ?? null);
}

function messagesTools(body: Dict): Value[] | null {
  const tools = listOf(body, "tools");
  if (tools === null) return null;
  return tools.map((tool) => {
    const members = asDict(tool, "a tool");
    const schema = new Map(asDict(members.get("input_schema"), "a tool's input_schema"));
    if (!schema.has("type")) schema.set("type", "object");
    const definition = functionDefinition(new Map([...members, ["parameters", schema]]));
    return dictOf([
      ["type", "function"],
      ["function", definition],
    ]);
  });
}
