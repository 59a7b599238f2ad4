import { textOf } from "../jinja/toText.ts";
import type { Dict, Value } from "../jinja/values.ts";
import { TokenFallback } from "../tokenFallback.ts";
import { asDict, dictOf, listOf, malformed, textOrNull } from "./body.ts";
import { refuseClientTemplate, templateArguments } from "./chatRequest.ts";
import type { ChatPrompt } from "./chatTemplate.ts";
import { functionDefinition } from "./tools.ts";

/** Reads a body of the responses API, whose items become messages as vLLM makes them. @throws {TokenFallback} */
export function readResponsesRequest(body: Dict): ChatPrompt {
  refuseClientTemplate(body);
  for (const key of ["previous_response_id", "conversation", "previous_input_messages", "prompt"])
    if ((body.get(key) ?? null) !== null) throw new TokenFallback("stored_conversation", key);
  const messages: Dict[] = [];
  const instructions = textOrNull(body, "instructions");
  if (instructions) messages.push(message("system", instructions));
  const input = body.get("input") ?? null;
  const items = typeof input === "string" ? null : listOf(body, "input");
  if (typeof input === "string") messages.push(message("user", input));
  else if (items === null) throw malformed("there is no input");
  else addItems(items, messages);
  const continued = isUnfinished(items?.at(-1));
  const reasoning = body.get("reasoning") ?? null;
  const effort = reasoning === null ? null : (asDict(reasoning, "reasoning").get("effort") ?? null);
  return {
    messages,
    tools: responsesTools(body),
    addGenerationPrompt: !continued,
    continueFinalMessage: continued,
    arguments: templateArguments(body, [], effort),
  };
}

function message(role: string, content: Value): Dict {
  return dictOf([
    ["role", role],
    ["content", content],
  ]);
}

/** The last item is one that the model was interrupted in. */
function isUnfinished(item: Value): boolean {
  if (!(item instanceof Map)) return false;
  const type = item.get("type") ?? "message";
  const status = item.get("status");
  return (type === "message" || type === "reasoning") && (status === "in_progress" || status === "incomplete");
}

/** Items that say one turn of the assistant (reasoning, text, calls) become one message. */
function addItems(items: readonly Value[], messages: Dict[]): void {
  const inputStart = messages.length;
  for (const item of items) {
    const members = asDict(item, "an input item");
    const last = messages.length > inputStart ? messages.at(-1) : undefined;
    const assistant = last?.get("role") === "assistant" ? last : null;
    const type = members.get("type") ?? "message";
    if (type === "function_call") addToolCall(functionCall(members), assistant, messages);
    else if (type === "function_call_output") {
      messages.push(
        dictOf([
          ["role", "tool"],
          ["content", members.get("output") ?? null],
          ["tool_call_id", members.get("call_id") ?? null],
        ]),
      );
    } else if (type === "reasoning") addAssistantText("reasoning", reasoningText(members), assistant, messages);
    else if (members.get("role") === "assistant") addAssistantItem(members, assistant, messages);
    else if (type === "message" && members.has("role")) messages.push(members);
    else throw new TokenFallback("unsupported_item", textOf(type));
  }
}

function addAssistantItem(members: Dict, assistant: Dict | null, messages: Dict[]): void {
  const content = members.get("content") ?? null;
  // Of several parts vLLM takes the first.
  const text = Array.isArray(content) ? asDict(content[0], "a content part").get("text") : content;
  if (typeof text !== "string") throw malformed("an assistant's item has no text");
  addAssistantText("content", text, assistant, messages);
}

function addAssistantText(key: "content" | "reasoning", text: string, assistant: Dict | null, messages: Dict[]): void {
  if (assistant !== null && (assistant.get(key) ?? null) === null) assistant.set(key, text);
  else
    messages.push(
      dictOf([
        ["role", "assistant"],
        [key, text],
      ]),
    );
}

function addToolCall(call: Dict, assistant: Dict | null, messages: Dict[]): void {
  const calls = assistant?.get("tool_calls");
  if (assistant === null)
    messages.push(
      dictOf([
        ["role", "assistant"],
        ["tool_calls", [call]],
      ]),
    );
  else assistant.set("tool_calls", Array.isArray(calls) ? [...calls, call] : [call]);
}

function functionCall(members: Dict): Dict {
  const name = textOrNull(members, "name") ?? "";
  const namespace = textOrNull(members, "namespace");
  return dictOf([
    ["id", members.get("call_id") ?? null],
    [
      "function",
      dictOf([
        ["name", namespace ? `${namespace}__${name}` : name],
        ["arguments", textOrNull(members, "arguments") ?? ""],
      ]),
    ],
    ["type", "function"],
  ]);
}

function reasoningText(members: Dict): string {
  if (members.get("encrypted_content")) throw malformed("encrypted reasoning is refused by the engine");
  const [first] = listOf(members, "content") ?? [];
  const [summary] = listOf(members, "summary") ?? [];
  const part = first ?? summary;
  return part === undefined ? "" : (textOrNull(asDict(part, "a part of reasoning"), "text") ?? "");
}

function responsesTools(body: Dict): Value[] | null {
  const tools = listOf(body, "tools");
  if (tools === null || tools.length === 0) return null;
  return tools.flatMap((tool): Dict[] => {
    const members = asDict(tool, "a tool");
    const type = members.get("type");
    if (type === "custom" || type === "namespace") throw new TokenFallback("unsupported_item", `a ${type} tool`);
    // Built-in tools are no business of the template's.
    if (type !== "function") return [];
    return [
      dictOf([
        ["type", "function"],
        ["function", functionDefinition(members)],
      ]),
    ];
  });
}
