import type { Dict, Value } from "../jinja/values.ts";
import { asDict, dictOf, listOf, malformed, textOrNull } from "./body.ts";

/** What a template gets as `tools` for a request of the chat API; null without tools. */
export function chatTools(body: Dict): Value[] | null {
  const tools = listOf(body, "tools");
  if (tools === null) return null;
  if (tools.length === 0) throw malformed("tools is empty");
  return tools.map((tool) => {
    const members = asDict(tool, "a tool");
    if ((members.get("type") ?? "function") !== "function") throw malformed("a tool is not of type 'function'");
    const deferLoading = members.get("defer_loading") ?? undefined;
    return dictOf([
      ["type", "function"],
      ["function", functionDefinition(asDict(members.get("function"), "a tool's function"), deferLoading)],
      ["defer_loading", deferLoading],
    ]);
  });
}

/** A function's definition as vLLM writes it again: these members in this order, others left out. */
export function functionDefinition(fn: Dict, deferLoading?: Value): Dict {
  const name = textOrNull(fn, "name");
  if (name === null) throw malformed("a function has no name");
  const parameters = fn.get("parameters") ?? null;
  if (parameters !== null) asDict(parameters, "a function's parameters");
  return dictOf([
    ["name", name],
    ["description", textOrNull(fn, "description")],
    ["parameters", parameters],
    ["strict", fn.get("strict") ?? undefined],
    ["defer_loading", fn.get("defer_loading") ?? deferLoading],
  ]);
}
