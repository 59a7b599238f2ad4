import { z } from "zod";
import { askForJson, parseJson } from "../answers.ts";
import type { AskEngine } from "../engineAdapter.ts";

/** What an engine says of its own event streams. */
export interface AdvertisedEvents {
  /** As the engine was told, e.g. `tcp://*:5557`. */
  readonly endpoint: string;
  readonly replayEndpoint: string | null;
  readonly topic: string;
  readonly dataParallelRanks: number | null;
}

const text = z.string().min(1).nullish().catch(null);
const natural = z.number().int().positive().nullish().catch(null);

/** vLLM's `--kv-events-config`, which SGLang has under the same name. */
const Settings = z.object({
  enable_kv_cache_events: z.boolean().nullish(),
  publisher: text,
  endpoint: text,
  replay_endpoint: text,
  topic: text,
});

const Sglang = z.object({
  dp_size: natural,
  kv_events_config: text,
  kv_events: z
    .object({ publisher: text, endpoint_host: text, endpoint_port_base: natural, topic: text, dp_size: natural })
    .nullish()
    .catch(null),
});

const Vllm = z.object({
  vllm_config: z.union([
    z.string(),
    z.object({
      kv_events_config: Settings.nullish(),
      parallel_config: z.object({ data_parallel_size: natural }).nullish().catch(null),
    }),
  ]),
});

/** vLLM and SGLang bind these unless told otherwise. */
const DEFAULT_ENDPOINT = "tcp://*:5557";

/**
 * Asks SGLang, or vLLM in development mode, where it publishes KV events; null: it has no route that tells, or tells
 * that it publishes none. Throws RouterError if nothing answers.
 */
export async function askForAdvertisedEvents(ask: AskEngine): Promise<AdvertisedEvents | null> {
  for (const path of ["/server_info?config_format=json", "/get_server_info"]) {
    const info = await askForJson(ask, path);
    const advertised = readVllm(info) ?? readSglang(info);
    if (advertised !== null) return advertised;
  }
  return null;
}

function readVllm(info: unknown): AdvertisedEvents | null {
  const read = Vllm.safeParse(info);
  if (!read.success) return null;
  const { vllm_config: config } = read.data;
  if (typeof config === "string") return readVllmText(config);
  const ranks = config.parallel_config?.data_parallel_size ?? null;
  return config.kv_events_config?.enable_kv_cache_events === true ? readSettings(config.kv_events_config, ranks) : null;
}

/** Best effort: the configuration as Python prints it. */
function readVllmText(config: string): AdvertisedEvents | null {
  const [, settings] = /kv_events_config=KVEventsConfig\(([^)]*)\)/.exec(config) ?? [];
  if (settings === undefined || !settings.includes("enable_kv_cache_events=True")) return null;
  const field = (name: string) => new RegExp(`\\b${name}='([^']*)'`).exec(settings)?.[1] ?? null;
  const [, ranks] = /\bdata_parallel_size=(\d+)/.exec(config) ?? [];
  return readSettings(
    {
      publisher: field("publisher"),
      endpoint: field("endpoint"),
      replay_endpoint: field("replay_endpoint"),
      topic: field("topic"),
    },
    ranks === undefined ? null : Number(ranks),
  );
}

function readSglang(info: unknown): AdvertisedEvents | null {
  const read = Sglang.safeParse(info);
  if (!read.success) return null;
  const { kv_events: events, kv_events_config: config, dp_size: ranks } = read.data;
  const settings = Settings.safeParse(config ? parseJson(config) : undefined).data ?? null;
  if (events && events.publisher === "zmq" && events.endpoint_port_base) {
    return {
      endpoint: `tcp://${events.endpoint_host ?? "*"}:${events.endpoint_port_base}`,
      replayEndpoint: settings?.replay_endpoint ?? null,
      topic: events.topic ?? "",
      dataParallelRanks: events.dp_size ?? ranks ?? null,
    };
  }
  return settings?.publisher === "zmq" ? readSettings(settings, ranks ?? null) : null;
}

function readSettings(settings: z.infer<typeof Settings>, dataParallelRanks: number | null): AdvertisedEvents | null {
  if (settings.publisher && settings.publisher !== "zmq") return null;
  return {
    endpoint: settings.endpoint ?? DEFAULT_ENDPOINT,
    replayEndpoint: settings.replay_endpoint ?? null,
    topic: settings.topic ?? "",
    dataParallelRanks,
  };
}
