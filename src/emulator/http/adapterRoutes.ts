import type { Exchange } from "./exchange.ts";
import { isTrue, missingField, stringField } from "./jsonBody.ts";
import { VllmError } from "./vllmError.ts";

/** `POST /v1/load_lora_adapter`: from now on the adapter can be asked for by its name. */
export function answerLoadAdapter(exchange: Exchange): void {
  const body = exchange.json();
  const name = stringField(body, "lora_name");
  const path = stringField(body, "lora_path");
  if (name === null) throw missingField("lora_name", body);
  if (path === null) throw missingField("lora_path", body);
  const { adapters } = exchange.context.incarnation;
  if (adapters.has(name) && !isTrue(body["load_inplace"])) {
    const message = `The lora adapter '${name}' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.`;
    throw new VllmError(400, message, "InvalidUserInput", null);
  }
  adapters.set(name, path);
  exchange.answer(200, null, `Success: LoRA adapter '${name}' added successfully.`);
}

/** `POST /v1/unload_lora_adapter` */
export function answerUnloadAdapter(exchange: Exchange): void {
  const body = exchange.json();
  const name = stringField(body, "lora_name");
  if (name === null) throw missingField("lora_name", body);
  const { adapters, ranks } = exchange.context.incarnation;
  if (!adapters.delete(name))
    throw new VllmError(404, `The lora adapter '${name}' cannot be found.`, "NotFoundError", null);
  for (const { loop } of ranks) loop.core.unloadAdapter(name);
  exchange.answer(200, null, `Success: LoRA adapter '${name}' removed successfully.`);
}
