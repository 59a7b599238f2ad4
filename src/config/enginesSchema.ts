import { z } from "zod";
import { PRIORS } from "#src/hardware/stepTimes.ts";
import { engineUrl, filePath, integer, kvEventSource, MAX_MS, secret, zmqAddress } from "./schemaParts.ts";

/** No blanks or quotes: it appears in headers, paths and metric labels. */
const engineName = z
  .string()
  .regex(/^[\w.:[\]/-]{1,256}$/)
  .meta({ allowed: "1..256 letters, digits and _ . : [ ] / -" });
const label = z.string().min(1).max(256);

const labels = z
  .strictObject({
    host: label.optional().describe("Machine."),
    nvlinkDomain: label.optional().describe("NVLink domain."),
    rack: label.optional().describe("Rack."),
    zone: label.optional().describe("Availability zone."),
    gpu: label.optional().describe("Kind of GPU, e.g. `h200`."),
  })
  .describe("Where an engine stands. Links between two engines are priced from what they share.");

const kvEvents = z
  .strictObject({
    endpoint: kvEventSource.describe(
      "ZeroMQ address of the first data-parallel rank; each further rank is on the next port. The host `*` stands for the engine's own. `pull`: TensorRT-LLM is asked over HTTP, which takes its events away from everybody else who asks.",
    ),
    replayEndpoint: zmqAddress.optional().describe("Where missed events are asked for. Absent: nowhere."),
    topic: z.string().max(512).default("").describe("Only topics that begin so. Empty: all."),
    bind: z.boolean().default(false).describe("The engine connects to `endpoint`, an address of the router."),
  })
  .nullable()
  .optional()
  .describe("Where an engine publishes its KV events. Absent: the engine is asked. Null: events are not used.");

const handoff = z
  .strictObject({
    protocol: z
      .enum(["nixl", "nixl-push", "mooncake", "shared-storage", "bootstrap", "disaggregated-params"])
      .optional()
      .describe(
        "How KV gets from prefill to decode. Absent: `nixl` for vLLM, `bootstrap` for SGLang, `disaggregated-params` for TensorRT-LLM.",
      ),
    leaseMs: integer(100, MAX_MS)
      .optional()
      .describe("How long a prefill engine keeps KV that nobody fetches. Absent: as the protocol has it."),
    bootstrapHost: label.optional().describe("Where it is met for a hand-off. Absent: the host of its URL."),
    bootstrapPort: integer(1, 65_535).optional().describe("Absent: the engine's default."),
    engineId: label
      .optional()
      .describe("`engine_id` of a prefill engine's connector; `nixl-push` and `mooncake` do not work without."),
    tensorParallelSize: integer(1, 1024).optional().describe("Of a prefill engine; `nixl-push` tells it. Absent: 1."),
    pipelineParallelSize: integer(1, 1024).optional().describe("Of a prefill engine; `nixl-push` tells it. Absent: 1."),
  })
  .optional()
  .describe("How an engine with the role `prefill` or `decode` hands KV over.");

const engineSettings = {
  engine: z
    .enum(["vllm", "sglang", "trtllm", "llamacpp"])
    .optional()
    .describe("Kind of engine. Absent: found out by probing."),
  role: z
    .enum(["mixed", "prefill", "decode", "draft"])
    .default("mixed")
    .describe(
      "What it is used for. `prefill` and `decode` form pairs; one that decodes also serves alone, except with SGLang.",
    ),
  handoff,
  labels: labels.prefault({}),
  apiKey: secret.optional().describe("Bearer key that the engine wants. A client's key is never sent to it."),
  dataParallelRanks: integer(1, 1024).optional().describe("Data-parallel ranks. Absent: the engine is asked."),
  maxRunningRequests: integer(1, 1_048_576)
    .optional()
    .describe(
      "Sequences in a batch (vLLM's `--max-num-seqs`, which it does not publish). Absent: what the engine says.",
    ),
  kvCapacityTokens: integer(1, 1_000_000_000).optional().describe("KV memory in tokens. Absent: what the engine says."),
  prior: z
    .enum([...PRIORS.keys()])
    .optional()
    .describe("Step times to start from, by model and GPU. Absent: a generic prior. Learned from traffic either way."),
  kvEvents,
};

const engine = z
  .strictObject({
    url: engineUrl.describe("Origin of the engine; a path prefix is allowed."),
    name: engineName.optional().describe("Stable name. Absent: host and port of the URL."),
    ...engineSettings,
  })
  .describe("One engine.");

export const enginesSchema = z
  .array(z.union([engineUrl.transform((url) => engine.parse({ url })), engine]))
  .max(4096)
  .default([])
  .describe("Engines, each a URL or an object.");

export const engineTlsSchema = z
  .strictObject({
    caFile: filePath.optional().describe("PEM file of certificate authorities to trust beside the system's."),
  })
  .prefault({})
  .describe("TLS towards engines whose URL is https. Changing it takes a restart.");

const fileSource = z
  .strictObject({
    path: filePath.describe("YAML or JSON file with a list of engines, in the form of `engines`. Watched."),
  })
  .describe("A file of engines.");

const dnsSource = z
  .strictObject({
    host: z.string().min(1).max(253).describe("Name to resolve."),
    record: z.enum(["address", "srv"]).default("address").describe("`address`: A and AAAA; `srv`: with ports."),
    port: integer(1, 65_535).default(8000).describe("Port of the engines; SRV records bring their own."),
    scheme: z.enum(["http", "https"]).default("http").describe("Scheme of the engines' URLs."),
    everyMs: integer(100, MAX_MS).default(10_000).describe("Time between two look-ups."),
    ...engineSettings,
  })
  .describe("A name whose addresses are engines.");

export const discoverySchema = z
  .strictObject({
    files: z.array(fileSource).max(64).default([]).describe("Watched files of engines."),
    dns: z.array(dnsSource).max(64).default([]).describe("DNS names of engines."),
    maxEngines: integer(1, 65_536).default(1024).describe("Engines that all sources may name together."),
  })
  .prefault({})
  .describe("Where engines come from besides `engines` and the admin API.");
