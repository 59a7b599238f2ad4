import { z } from "zod";
import { askForJson, askForText, engineFailed, parseJson } from "../answers.ts";
import type { AskEngine, EngineAdapter } from "../engineAdapter.ts";
import { requireModels } from "../modelList.ts";
import type { ServedModel } from "../vocabulary.ts";
import { LLAMACPP_FACT_SOURCES, readLlamacppMetrics, readLlamacppSlots } from "./llamacppMetrics.ts";

const natural = z.number().int().positive().nullish().catch(null);

const Props = z.object({
  build_info: z.string(),
  total_slots: natural,
  /** `n_ctx` is the context of one slot. */
  default_generation_settings: z.object({ n_ctx: natural }).nullish().catch(null),
});

const Loading = z.object({ error: z.object({ message: z.string().regex(/loading/i) }) });

async function askForProps(ask: AskEngine): Promise<z.infer<typeof Props> | null> {
  return Props.safeParse(await askForJson(ask, "/props")).data ?? null;
}

/** Its model cards do not tell the context that was configured; `/props` does, for the one model of this process. */
async function askForModels(ask: AskEngine, slotTokens: number | null): Promise<readonly ServedModel[]> {
  const models = await requireModels(ask);
  return models.length === 1 ? models.map((model) => ({ ...model, maxModelTokens: slotTokens })) : models;
}

export const llamacppAdapter: EngineAdapter = {
  kind: "llamacpp",

  async probe(ask) {
    const props = await askForProps(ask);
    if (props === null) return null;
    const slots = props.total_slots ?? null;
    const slotTokens = props.default_generation_settings?.n_ctx ?? null;
    return {
      kind: "llamacpp",
      version: props.build_info,
      dataParallelRanks: 1,
      models: await askForModels(ask, slotTokens),
      maxRunningRequests: slots,
      kvCapacityTokens: slots !== null && slotTokens !== null ? slots * slotTokens : null,
      // A slot's cache is kept token by token.
      kvBlockTokens: null,
      prefixCachingEnabled: null,
    };
  },

  async health(ask) {
    const answer = await ask("/health");
    if (answer.status === 200) return "ready";
    return Loading.safeParse(parseJson(answer.body)).success ? "loading" : "unready";
  },

  async models(ask) {
    const props = await askForProps(ask);
    return askForModels(ask, props?.default_generation_settings?.n_ctx ?? null);
  },

  async scrape(ask) {
    const text = await askForText(ask, "/metrics");
    const scrape = text === null ? null : readLlamacppMetrics(text);
    const known = scrape ?? readLlamacppSlots(await askForJson(ask, "/slots"));
    if (known === null) throw engineFailed("llama-server has neither /metrics (--metrics) nor /slots.");
    return known;
  },

  rankHeader: () => null,
  requestIdHeader: null,
  adapterByModelName: false,
  modelNameFor: () => null,
  factSources: LLAMACPP_FACT_SOURCES,
};
