import { textOf } from "../jinja/toText.ts";
import type { Dict, Value } from "../jinja/values.ts";
import { TokenFallback } from "../tokenFallback.ts";
import { asDict, flagOf, listOf, malformed } from "./body.ts";
import type { ChatPrompt } from "./chatTemplate.ts";
import { orderedToolCall } from "./conversation.ts";
import { chatTools } from "./tools.ts";

/** Reads a body of the chat API. @throws {TokenFallback} */
export function readChatRequest(body: Dict): ChatPrompt {
  refuseClientTemplate(body);
  const messages = listOf(body, "messages");
  if (messages === null) throw malformed("there are no messages");
  const continueFinalMessage = flagOf(body, "continue_final_message", false);
  return {
    messages: messages.map((message) => chatMessage(asDict(message, "a message"))),
    tools: chatTools(body),
    addGenerationPrompt: flagOf(body, "add_generation_prompt", true),
    continueFinalMessage,
    arguments: templateArguments(
      body,
      [["documents", body.get("documents") ?? null]],
      body.get("reasoning_effort") ?? null,
    ),
  };
}

/** The engine runs a client's template only if told to, and this router never does. */
export function refuseClientTemplate(body: Dict): void {
  const given = body.get("chat_template_kwargs") ?? null;
  const inArguments = given instanceof Map ? (given.get("chat_template") ?? null) : null;
  if ((body.get("chat_template") ?? null) !== null || inArguments !== null) throw new TokenFallback("client_template");
}

/** A message as vLLM's validation leaves it. */
function chatMessage(message: Dict): Dict {
  const result = new Map(message);
  const older = result.get("reasoning_content") ?? null;
  result.delete("reasoning_content");
  if (older !== null && (result.get("reasoning") ?? null) === null) result.set("reasoning", older);
  const toolCalls = result.get("tool_calls") ?? null;
  if (Array.isArray(toolCalls)) result.set("tool_calls", toolCalls.map(orderedToolCall));
  return result;
}

/** The client's template arguments with what other members of the body say to the template. */
export function templateArguments(
  body: Dict,
  members: readonly (readonly [name: string, value: Value])[],
  reasoningEffort: Value,
): Map<string, Value> {
  const result = new Map<string, Value>();
  const given = body.get("chat_template_kwargs") ?? null;
  if (given !== null)
    for (const [name, value] of asDict(given, "chat_template_kwargs")) result.set(textOf(name), value);
  const thinkingGiven = result.has("enable_thinking");
  for (const [name, value] of members) if (value !== null && value !== "auto") result.set(name, value);
  if (reasoningEffort !== null) {
    result.set("reasoning_effort", reasoningEffort);
    // Templates that think only when asked to.
    if (!thinkingGiven) result.set("enable_thinking", reasoningEffort !== "none");
  }
  return result;
}
