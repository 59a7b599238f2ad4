import { Option, Command } from "commander";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { EVENT_FORMS, type EventFormName } from "#src/emulator/events/eventForm.ts";
import { DEFAULT_KV_EVENTS } from "#src/emulator/events/eventOptions.ts";
import { defaultOptions, type EmulatedEngineOptions } from "#src/emulator/engineOptions.ts";
import { integer, positive } from "./flagValues.ts";
import { refuseUnknownGpu } from "./gpuFlag.ts";

interface EmulateFlags {
  readonly count: number;
  readonly port: number;
  readonly host: string;
  readonly model: string;
  readonly gpu: string;
  readonly timeScale: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  readonly kvTokens?: number;
  readonly blockSize: number;
  readonly maxModelLen?: number;
  readonly lora: string[];
  readonly maxLoras: number;
  readonly loraLoadMs: number;
  readonly dataParallelSize: number;
  readonly prefixCaching: boolean;
  readonly answerTokens: number;
  readonly tokenizer?: string;
  readonly hostKvTokens: number;
  readonly hostLinkGbS: number;
  readonly kvEventsPort?: number;
  readonly kvReplayPort?: number;
  readonly kvReplay: boolean;
  readonly kvTopic: string;
  readonly kvBufferSteps: number;
  readonly kvForm: EventFormName;
  readonly priority: boolean;
}

/** `kvasir emulate`: engines over real HTTP that compute nothing. */
export function emulateCommand(): Command {
  const defaults = defaultOptions;
  return new Command("emulate")
    .description("run emulated engines: vLLM's HTTP surface with modelled timing, no GPU needed")
    .option("--count <n>", "how many engines", integer(1, 256), 1)
    .addOption(new Option("--engine-kind <kind>", "whose surface").choices(["vllm"]).default("vllm"))
    .option("--port <port>", "port of the first; the others follow. 0: any free ports", integer(0, 65_535), 8001)
    .option("--host <address>", "address to listen on", defaults.host)
    .option("--model <name>", "name of the model; a known one has its own times and memory", defaults.model)
    .option("--gpu <gpu>", "h100, h200 or a100, with how many of them if it matters: h100_tp4", defaults.gpu)
    .option("--time-scale <x>", "real time per modelled time: 0.1 is ten times faster", positive, defaults.timeScale)
    .option("--max-num-seqs <n>", "sequences in a batch", integer(1, 65_536), defaults.maxRunning)
    .option("--max-num-batched-tokens <n>", "tokens in a step", integer(1, 1_048_576), defaults.maxBatchedTokens)
    .option(
      "--kv-tokens <n>",
      "KV memory in tokens; default: what the model leaves of the GPU",
      integer(16, 100_000_000),
    )
    .option("--tokenizer <folder>", "the model's tokenizer and chat template; default: four bytes are a token")
    .option("--host-kv-tokens <n>", "host memory in tokens, for blocks to come back from", integer(0, 1_000_000_000), 0)
    .option("--host-link-gb-s <x>", "how fast they come back", positive, defaults.hostLinkGBps)
    .option("--block-size <n>", "tokens in a KV block", integer(1, 4096), defaults.blockTokens)
    .option("--max-model-len <n>", "longest prompt and answer together", integer(1, 10_000_000))
    .option("--lora <name...>", "adapters that can be asked for by name", [])
    .option("--max-loras <n>", "adapters in memory at a time", integer(1, 1024), defaults.maxResidentAdapters)
    .option("--lora-load-ms <ms>", "what loading an adapter costs", positive, defaults.adapterLoadMs)
    .option("--data-parallel-size <n>", "ranks behind each address", integer(1, 64), defaults.dataParallelRanks)
    .option("--no-prefix-caching", "switch the prefix cache off")
    .option("--priority", "let a request's `priority` order the queue", false)
    .option(
      "--answer-tokens <n>",
      "median length of answers to requests that set no limit",
      integer(1, 1_000_000),
      defaults.answerLength.medianTokens,
    )
    .option(
      "--kv-events-port <port>",
      "publish KV events from this port on, one for each rank; 0: any",
      integer(0, 65_535),
    )
    .option("--kv-replay-port <port>", "port of the first replay; default: behind the event ports", integer(0, 65_535))
    .option("--no-kv-replay", "publish KV events without a replay")
    .option("--kv-topic <topic>", "topic of KV events", DEFAULT_KV_EVENTS.topic)
    .option(
      "--kv-buffer-steps <n>",
      "batches of KV events to repeat",
      integer(0, 1_000_000),
      DEFAULT_KV_EVENTS.bufferSteps,
    )
    .addOption(
      new Option("--kv-form <form>", "whose KV events they look like")
        .choices(Object.keys(EVENT_FORMS))
        .default(DEFAULT_KV_EVENTS.form),
    )
    .action(async (flags: EmulateFlags, command: Command) => {
      refuseUnknownGpu(flags, command);
      const engines = await startEngines(flags);
      for (const engine of engines) console.log(readyLine(engine));
      console.log(
        `\n${hardwareLine(engines)}\nFaults: curl -X POST ${engines[0]?.url}/emulator/faults -d '{"slowFactor": 4}'   Stop: Ctrl-C`,
      );
      await stopSignal();
      await Promise.all(engines.map((engine) => engine.stop()));
    });
}

function readyLine({ url, model, kvEvents }: EmulatedEngine): string {
  if (kvEvents === null) return `ready ${url} ${model}`;
  return `ready ${url} ${model} events=${kvEvents.events} replay=${kvEvents.replay ?? "none"}`;
}

function hardwareLine([engine]: readonly EmulatedEngine[]): string {
  if (engine === undefined) return "";
  const { prior, model, gpu, kvTokens } = engine.options;
  const unknown = `${model} on ${gpu} is not in the table; llama-3.1-8b on one H100 stands in`;
  return `Times: ${prior ?? unknown}   KV memory: ${kvTokens} tokens`;
}

/** Starts all or none. */
async function startEngines(flags: EmulateFlags): Promise<EmulatedEngine[]> {
  const started = await Promise.allSettled(
    Array.from({ length: flags.count }, (_, at) => startEmulatedEngine(engineOptions(flags, at))),
  );
  const engines = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = started.find((result) => result.status === "rejected");
  if (failed === undefined) return engines;
  await Promise.all(engines.map((engine) => engine.stop()));
  throw failed.reason;
}

/** Options of the engine with this number, from 0. */
function engineOptions(flags: EmulateFlags, number: number): EmulatedEngineOptions {
  return {
    model: flags.model,
    gpu: flags.gpu,
    host: flags.host,
    port: nth(flags.port, number),
    timeScale: flags.timeScale,
    maxRunning: flags.maxNumSeqs,
    maxBatchedTokens: flags.maxNumBatchedTokens,
    ...(flags.kvTokens === undefined ? {} : { kvTokens: flags.kvTokens }),
    blockTokens: flags.blockSize,
    ...(flags.tokenizer === undefined ? {} : { tokenizer: flags.tokenizer }),
    hostKvTokens: flags.hostKvTokens,
    hostLinkGBps: flags.hostLinkGbS,
    ...(flags.maxModelLen === undefined ? {} : { maxModelTokens: flags.maxModelLen }),
    adapters: flags.lora,
    maxResidentAdapters: flags.maxLoras,
    adapterLoadMs: flags.loraLoadMs,
    dataParallelRanks: flags.dataParallelSize,
    prefixCaching: flags.prefixCaching,
    policy: flags.priority ? "priority" : "fcfs",
    ...kvEventsOf(flags, number),
    answerLength: { ...defaultOptions.answerLength, medianTokens: flags.answerTokens },
  };
}

/** Each engine takes as many ports as it has ranks; all replays come after all events, unless told otherwise. */
function kvEventsOf(flags: EmulateFlags, number: number): Pick<EmulatedEngineOptions, "kvEvents"> {
  const { kvEventsPort: first, kvReplayPort, dataParallelSize: ranks } = flags;
  if (first === undefined) return {};
  const firstReplay = kvReplayPort ?? (first === 0 ? 0 : first + flags.count * ranks);
  return {
    kvEvents: {
      port: nth(first, number * ranks),
      replayPort: flags.kvReplay ? nth(firstReplay, number * ranks) : null,
      topic: flags.kvTopic,
      bufferSteps: flags.kvBufferSteps,
      form: flags.kvForm,
    },
  };
}

/** 0 stands for any port, whatever the number. */
function nth(firstPort: number, number: number): number {
  return firstPort === 0 ? 0 : firstPort + number;
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}
