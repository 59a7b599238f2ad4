import type { ServedModel } from "#src/engines/vocabulary.ts";
import { modelNotFound } from "#src/errors/shared.ts";

/** `/v1/models` in OpenAI's shape, with vLLM's `parent` and `max_model_len`. */
export function modelListBody(models: Iterable<ServedModel>, createdSeconds: number): string {
  return JSON.stringify({ object: "list", data: [...models].map((model) => card(model, createdSeconds)) });
}

/** `/v1/models/{id}`. */
export function modelBody(models: Iterable<ServedModel>, id: string, createdSeconds: number): string {
  for (const model of models) if (model.id === id) return JSON.stringify(card(model, createdSeconds));
  throw modelNotFound(id);
}

function card({ id, parent, maxModelTokens }: ServedModel, created: number): Record<string, unknown> {
  return { id, object: "model", created, owned_by: "kvasir", parent, max_model_len: maxModelTokens };
}
