import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Publisher } from "zeromq";
import { configFrom } from "#src/config/loadConfig.ts";
import type { Config } from "#src/config/schema.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { FindingId } from "#src/doctor/findings/catalogue.ts";
import { modelTokenizers } from "#src/doctor/modelTokenizers.ts";
import type { OwnTokenizer, Tokenizers } from "#src/doctor/tokenizers.ts";
import type { EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import type { EmulatedEngineOptions } from "#src/emulator/engineOptions.ts";
import { renderChat } from "#src/emulator/tokens/chatTemplate.ts";
import { tokenizeText } from "#src/emulator/tokens/tokenBuffer.ts";
import { writeSmallTokenizer } from "../unit/emulator/smallTokenizer.ts";
import { recordedEngine } from "../unit/engines/recordedEngine.ts";
import { emulate } from "./emulatorHelp.ts";
import { recordedAnswers, serve } from "./recordedServer.ts";

const NO_TOKENIZERS: Tokenizers = { of: () => Promise.resolve(null) };

/** A fleet with something wrong. */
export interface Scenario {
  readonly endpoints: readonly EngineEndpoint[];
  readonly wantedModels?: readonly string[];
  /** Absent: the emulator's own. */
  readonly tokenizers?: Tokenizers;
  /** What else is found there, because it follows. */
  readonly also?: readonly FindingId[];
  /** Something is waited for in vain, so not for long. */
  readonly isSilent?: boolean;
}

type Build = (t: TestContext) => Promise<Scenario>;

/** Nothing is wrong with it. */
export function healthy(t: TestContext, options: EmulatedEngineOptions = {}): Promise<EmulatedEngine> {
  return emulate(t, { kvEvents: {}, ...options });
}

/** What a configuration says of it that has nothing to be told. */
export function endpointOf({ url }: { readonly url: string }, more: Record<string, unknown> = {}): EngineEndpoint {
  return parseEndpoint({ url, maxRunningRequests: 256, ...more });
}

export function pair(t: TestContext, differs: EmulatedEngineOptions, common: EmulatedEngineOptions = {}) {
  return Promise.all([healthy(t, common), healthy(t, { ...common, ...differs })]).then((engines) => ({
    endpoints: engines.map((engine) => endpointOf(engine)),
    engines,
  }));
}

/** How the emulator tokenizes, or in another way. */
export function emulatedTokenizer(other: { prompt?: boolean; chat?: boolean } = {}): Tokenizers {
  const shift = (tokens: Uint32Array, isOther = false): number[] =>
    Array.from(tokens, (token) => token + Number(isOther));
  const own: OwnTokenizer = {
    prompt: (text) => shift(tokenizeText(text), other.prompt),
    chat: (messages) => shift(renderChat(messages, null), other.chat),
  };
  return { of: () => Promise.resolve(own) };
}

/** For every finding a fleet in which it is found, and nothing that is not named. */
export const SCENARIOS: Readonly<Record<FindingId, Build>> = {
  engine_unreachable: async (t) => {
    const engine = await healthy(t);
    await engine.stop();
    return { endpoints: [endpointOf(engine)] };
  },
  engine_unknown: async (t) => {
    const { url } = await serve(t, (_request, response) => response.writeHead(404).end("not here"));
    return { endpoints: [endpointOf({ url })] };
  },
  engine_kind_differs: async (t) => ({ endpoints: [endpointOf(await healthy(t), { engine: "sglang" })] }),
  engine_not_ready: async (t) => {
    const url = await fronted(t, await healthy(t), { "/health": { status: 503, body: "" } });
    return { endpoints: [endpointOf({ url })] };
  },
  engine_asleep: async (t) => {
    const engine = await healthy(t);
    await engine.faults.set({ asleep: true });
    // Whoever sleeps does not tokenize either.
    const url = await fronted(t, engine, { "/tokenize": { status: 503, body: "" } });
    return { endpoints: [endpointOf({ url })] };
  },
  ranks_differ: async (t) => ({
    endpoints: [endpointOf(await healthy(t), { dataParallelRanks: 2 })],
    also: ["kv_events_unreachable"],
  }),
  no_models: async (t) => {
    const url = await fronted(t, await healthy(t), {
      "/v1/models": { status: 200, body: `{"object":"list","data":[]}` },
    });
    return { endpoints: [endpointOf({ url })] };
  },
  metrics_unavailable: async (t) => {
    const url = await fronted(t, await healthy(t), { "/metrics": { status: 404, body: "" } });
    return { endpoints: [endpointOf({ url })], also: ["limits_assumed"] };
  },
  metrics_missing: async (t) => {
    const engine = await healthy(t);
    await engine.faults.set({ missingMetrics: ["vllm:num_requests_waiting"] });
    return { endpoints: [endpointOf(engine)] };
  },
  limits_assumed: async (t) => ({ endpoints: [parseEndpoint((await healthy(t)).url)] }),
  prefix_caching_off: async (t) => ({ endpoints: [endpointOf(await healthy(t, { prefixCaching: false }))] }),
  clock_skew: async (t) => {
    const engine = await healthy(t);
    await engine.faults.set({ clockSkewMs: -10_000 });
    return { endpoints: [endpointOf(engine)] };
  },
  probe_failed: async (t) => {
    const engine = await healthy(t);
    await engine.faults.set({ error: { status: 500 } });
    return { endpoints: [endpointOf(engine)] };
  },
  cached_tokens_missing: async (t) => ({ endpoints: [endpointOf(await healthy(t, { reportsCachedTokens: false }))] }),
  repeat_not_cached: async (t) => {
    const engine = await healthy(t, { prefixCaching: false, kvEvents: null });
    await engine.faults.set({ missingMetrics: ["vllm:cache_config_info"] });
    return { endpoints: [endpointOf(engine)], also: ["metrics_missing", "limits_assumed", "kv_events_off"] };
  },
  tokenizer_differs: async (t) => ({
    endpoints: [endpointOf(await healthy(t))],
    tokenizers: emulatedTokenizer({ prompt: true, chat: true }),
  }),
  tokenizer_unusable: async (t) => {
    const engine = await healthy(t);
    return {
      endpoints: [endpointOf(engine)],
      tokenizers: modelTokenizers(configOf(engine, "/not/there").models),
    };
  },
  template_unusable: async (t) => {
    const folder = await temporaryFolder(t);
    const engine = await healthy(t, { tokenizer: await writeSmallTokenizer(join(folder, "with")) });
    const without = await writeSmallTokenizer(join(folder, "without"), { hasTemplate: false });
    return { endpoints: [endpointOf(engine)], tokenizers: modelTokenizers(configOf(engine, without).models) };
  },
  tokenizer_missing: async (t) => ({ endpoints: [endpointOf(await healthy(t))], tokenizers: NO_TOKENIZERS }),
  template_differs: async (t) => ({
    endpoints: [endpointOf(await healthy(t))],
    tokenizers: emulatedTokenizer({ chat: true }),
  }),
  kv_events_off: async (t) => ({ endpoints: [endpointOf(await healthy(t, { kvEvents: null }))] }),
  kv_events_none: async (t) => {
    const { url } = await serve(t, recordedAnswers(recordedEngine("llamacpp")));
    return { endpoints: [endpointOf({ url })], also: ["probe_failed"] };
  },
  kv_events_unreachable: async (t) => {
    const kvEvents = { endpoint: `tcp://*:${await closedPort()}`, replayEndpoint: null, topic: "" };
    return { endpoints: [endpointOf(await healthy(t), { kvEvents })] };
  },
  kv_events_silent: async (t) => {
    const engine = await healthy(t, { kvEvents: { topic: "kv@here" } });
    const { events = "", replay = null } = engine.kvEvents ?? {};
    const kvEvents = { endpoint: events, replayEndpoint: replay, topic: "kv@there" };
    return { endpoints: [endpointOf(engine, { kvEvents })], isSilent: true };
  },
  kv_events_unreadable: async (t) => {
    const engine = await healthy(t);
    const kvEvents = { endpoint: await garbage(t), replayEndpoint: engine.kvEvents?.replay ?? null, topic: "" };
    return { endpoints: [endpointOf(engine, { kvEvents })], isSilent: true };
  },
  kv_replay_missing: async (t) => ({ endpoints: [endpointOf(await healthy(t, { kvEvents: { replayPort: null } }))] }),
  kv_replay_silent: async (t) => {
    const engine = await healthy(t);
    await engine.faults.set({ kvReplaySilent: true });
    return { endpoints: [endpointOf(engine)], isSilent: true };
  },
  block_sizes_differ: (t) => pair(t, { blockTokens: 24 }),
  hash_algorithms_differ: (t) => pair(t, { hashAlgorithm: "sha256_cbor", hashSeed: 1 }),
  hash_seeds_differ: (t) => pair(t, { hashSeed: 1 }),
  tokenizers_differ: async (t) => {
    // Events tell the model's own tokens, so the tokens of /tokenize are not found among them.
    const { endpoints, engines } = await pair(t, {}, { kvEvents: null });
    await engines[0]?.faults.set({ otherTokenizer: true });
    return { endpoints, tokenizers: NO_TOKENIZERS, also: ["kv_events_off", "kv_events_off"] };
  },
  models_differ: async (t) => {
    const [one, other] = [await healthy(t), await healthy(t)];
    const models = (await (await fetch(`${other.url}/v1/models`)).json()) as { data: { id: string }[] };
    models.data.push({ ...models.data[0], id: "another-name" });
    const url = await fronted(t, other, { "/v1/models": { status: 200, body: JSON.stringify(models) } });
    return { endpoints: [endpointOf(one), endpointOf({ url })] };
  },
  adapters_differ: (t) => pair(t, { adapters: ["an-adapter"] }),
  max_model_len_differs: (t) => pair(t, { maxModelTokens: 4096 }),
  versions_differ: (t) => pair(t, { version: "0.33.0" }),
  model_not_served: async (t) => {
    const engine = await healthy(t);
    return { endpoints: [endpointOf(engine)], wantedModels: [engine.model, "nobody-has-it"] };
  },
};

export function configOf({ model }: EmulatedEngine, tokenizer: string): Config {
  return configFrom({ models: { [model]: { tokenizer } } });
}

export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kvasir-doctor-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

interface OwnAnswer {
  readonly status?: number;
  /** Absent: the engine's. */
  readonly body?: string;
  readonly delayMs?: number;
}

/** An engine behind a server that answers some paths itself, or late; KV events stay where they are. */
export async function fronted(
  t: TestContext,
  engine: EmulatedEngine,
  own: Readonly<Record<string, OwnAnswer>>,
): Promise<string> {
  const { url } = await serve(t, (incoming, response) => {
    const { body, status = 200, delayMs = 0 } = own[incoming.url ?? ""] ?? {};
    const { method, headers } = incoming;
    setTimeout(() => {
      if (body !== undefined) {
        response.writeHead(status, { "content-type": "application/json" }).end(body);
        return;
      }
      const onward = httpRequest(engine.url + (incoming.url ?? "/"), { method, headers }, (answered) => {
        response.writeHead(answered.statusCode ?? 502, answered.headers);
        answered.pipe(response);
      });
      onward.on("error", () => response.destroy());
      incoming.pipe(onward);
    }, delayMs);
  });
  return url;
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** A publisher of batches with an event that has no hashes. */
async function garbage(t: TestContext): Promise<string> {
  const publisher = new Publisher({ linger: 0 });
  await publisher.bind("tcp://127.0.0.1:*");
  const payload = Buffer.concat([
    Buffer.from([0x93, 0xcb]),
    Buffer.alloc(8),
    Buffer.from([0x91, 0x91, 0xab]),
    Buffer.from("BlockStored"),
    Buffer.from([0x00]),
  ]);
  const send = async (): Promise<void> => {
    for (let seq = 0; !publisher.closed; seq++) {
      const number = Buffer.alloc(8);
      number.writeBigUInt64BE(BigInt(seq));
      await publisher.send(["", number, payload]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  send().catch(() => {});
  t.after(() => publisher.close());
  return publisher.lastEndpoint ?? "";
}
