import { spawn } from "node:child_process";
import { open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { ENGINE_FOLDER, modelFolder, type ModelName } from "./install.ts";

/** How one engine is started. */
export interface EngineSpec {
  readonly model: ModelName;
  /** Names under which it serves the model besides the model's own. */
  readonly aliases?: readonly string[];
  /** Multiples of 32: the engine's attention on CPUs takes no others. */
  readonly blockTokens: number;
  /** Blocks of its KV cache. */
  readonly blocks: number;
  readonly adapters: boolean;
  readonly ports: { readonly http: number; readonly events: number; readonly replay: number };
  /** Where logs and process ids are kept while the suite runs. */
  readonly runFolder: string;
}

/** An engine that answers. */
export interface Engine extends EngineSpec {
  readonly url: string;
  /** ZeroMQ addresses of its KV events. */
  readonly events: string;
  readonly replay: string;
  readonly topic: string;
}

export const MAX_MODEL_TOKENS = 4096;
const TOOL_PARSERS: Readonly<Record<ModelName, string>> = { target: "hermes", llama: "llama3_json" };
/** It takes less than a minute on two cores that have nothing else to do. */
const START_LIMIT_MS = 1_200_000;

export async function freePorts(): Promise<EngineSpec["ports"]> {
  const servers = [createServer(), createServer(), createServer()];
  const [http, events, replay] = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.on("error", reject);
          server.listen(0, "127.0.0.1", () => {
            const address = server.address();
            if (address !== null && typeof address === "object") resolve(address.port);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return { http: http!, events: events!, replay: replay! };
}

/** Starts an engine and waits until it answers. Rejects with the end of its log if it does not. */
export async function startEngine(spec: EngineSpec): Promise<Engine> {
  const { http, events, replay } = spec.ports;
  const engine: Engine = {
    ...spec,
    url: `http://127.0.0.1:${http}`,
    events: `tcp://127.0.0.1:${events}`,
    replay: `tcp://127.0.0.1:${replay}`,
    topic: `kv@127.0.0.1:${http}@${spec.model}`,
  };
  const logPath = join(spec.runFolder, `${http}.log`);
  const log = await open(logPath, "a");
  // A group of its own, as the engine starts further processes; and polite, as tests run beside it.
  const child = spawn("nice", ["-n", "1", join(ENGINE_FOLDER, "venv/bin/vllm"), ...commandLine(engine)], {
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
    env: { ...process.env, ...ENVIRONMENT },
  });
  await log.close();
  child.unref();
  let ended = false;
  child.on("exit", () => (ended = true));
  child.on("error", () => (ended = true));
  await writeFile(pidPath(spec), String(child.pid));
  const endMs = performance.now() + START_LIMIT_MS;
  while (!(await isHealthy(engine.url))) {
    if (ended || performance.now() > endMs) {
      const what = ended ? "ended" : `did not answer within ${START_LIMIT_MS / 1000} s`;
      await stopEngine(spec);
      const text = await readFile(logPath, "utf8");
      throw new Error(`the engine ${what}:\n${text.slice(-4000)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return engine;
}

/** Ends all engines that were started in this run. */
export async function stopEngines(runFolder: string): Promise<void> {
  const files = (await readdir(runFolder)).filter((file) => file.endsWith(".pid"));
  await Promise.all(files.map((file) => stopGroup(join(runFolder, file), "SIGTERM")));
}

/** Ends an engine, with all its processes. Returns when they are gone. */
export function stopEngine(spec: EngineSpec, signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
  return stopGroup(pidPath(spec), signal);
}

async function stopGroup(pidFile: string, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  let group: number;
  try {
    group = -Number(await readFile(pidFile, "utf8"));
  } catch {
    return;
  }
  if (!Number.isSafeInteger(group) || group >= -1) return;
  const endMs = performance.now() + 15_000;
  let now: NodeJS.Signals = signal;
  while (signalled(group, now)) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    now = performance.now() > endMs ? "SIGKILL" : signal;
  }
  await rm(pidFile, { force: true });
}

function signalled(group: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(group, signal);
  } catch {
    return false;
  }
}

const pidPath = ({ runFolder, ports }: EngineSpec): string => join(runFolder, `${ports.http}.pid`);

const ENVIRONMENT = {
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
  VLLM_NO_USAGE_STATS: "1",
  VLLM_CPU_KVCACHE_SPACE: "1",
  VLLM_HOST_IP: "127.0.0.1",
  // Brings /server_info and /reset_prefix_cache.
  VLLM_SERVER_DEV_MODE: "1",
  VLLM_ALLOW_RUNTIME_LORA_UPDATING: "True",
  // Else a worker pins itself to one core, and starves if that core is busy.
  VLLM_CPU_OMP_THREADS_BIND: "nobind",
  OMP_NUM_THREADS: "1",
};

function commandLine(engine: Engine): string[] {
  const { model, ports, blockTokens, blocks, topic } = engine;
  const events = {
    enable_kv_cache_events: true,
    publisher: "zmq",
    endpoint: `tcp://*:${ports.events}`,
    replay_endpoint: `tcp://*:${ports.replay}`,
    topic,
  };
  const adapters = ["adapter-a", "adapter-b"] as const;
  const flags: Record<string, string | readonly string[]> = {
    "--served-model-name": [model, ...(engine.aliases ?? [])],
    "--host": "127.0.0.1",
    "--port": String(ports.http),
    "--dtype": "float32",
    "--enforce-eager": [],
    "--max-model-len": String(MAX_MODEL_TOKENS),
    "--max-num-batched-tokens": "512",
    "--max-num-seqs": "16",
    "--block-size": String(blockTokens),
    "--num-gpu-blocks-override": String(blocks),
    "--prefix-caching-hash-algo": "sha256_cbor",
    "--enable-prompt-tokens-details": [],
    "--enable-auto-tool-choice": [],
    "--tool-call-parser": TOOL_PARSERS[model],
    "--kv-events-config": JSON.stringify(events),
  };
  if (engine.adapters)
    Object.assign(flags, {
      "--enable-lora": [],
      "--max-loras": "2",
      "--max-lora-rank": "8",
      "--lora-modules": adapters.map((name) => `${name}=${modelFolder(name)}`),
    });
  return ["serve", modelFolder(model), ...Object.entries(flags).flat(2)];
}

async function isHealthy(url: string): Promise<boolean> {
  return fetch(`${url}/health`, { signal: AbortSignal.timeout(2000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}
