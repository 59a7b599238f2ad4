import { z } from "zod";
import { askForJson, engineFailed } from "./answers.ts";
import type { AskEngine } from "./engineAdapter.ts";
import type { ServedModel } from "./vocabulary.ts";

/** What `/v1/models` says: the names, and which engine says so. */
export interface ModelList {
  readonly models: readonly ServedModel[];
  /** `owned_by` of the first card: `vllm`, `sglang`, `tensorrt_llm`, `llamacpp`. */
  readonly ownedBy: string | null;
}

const Card = z.object({
  id: z.string().min(1),
  parent: z.string().nullish().catch(null),
  owned_by: z.string().nullish().catch(null),
  max_model_len: z.number().int().positive().nullish().catch(null),
});

const List = z.object({ data: z.array(z.unknown()) });

/** OpenAI's model list as the engines extend it; null if this route answers something else. Unreadable cards are left out. */
export async function askForModels(ask: AskEngine): Promise<ModelList | null> {
  const list = List.safeParse(await askForJson(ask, "/v1/models"));
  if (!list.success) return null;
  const cards = list.data.data.flatMap((card) => Card.safeParse(card).data ?? []);
  return {
    models: cards.map((card) => ({
      id: card.id,
      parent: card.parent ?? null,
      maxModelTokens: card.max_model_len ?? null,
    })),
    ownedBy: cards[0]?.owned_by ?? null,
  };
}

/** The models of an engine that must have them. */
export async function requireModels(ask: AskEngine): Promise<readonly ServedModel[]> {
  const list = await askForModels(ask);
  if (list === null) throw engineFailed("The engine's /v1/models is not a model list.");
  return list.models;
}
