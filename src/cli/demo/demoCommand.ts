import { Command, Option } from "commander";
import { configFrom } from "#src/config/loadConfig.ts";
import { POLICY_NAMES } from "#src/config/names.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { startRouter, type RunningRouter } from "#src/gateway/router.ts";
import { readTrace } from "#src/simulator/traces/readTrace.ts";
import { TraceError } from "#src/simulator/traces/traceRow.ts";
import { integer, positive } from "../flagValues.ts";
import { refuseUnknownGpu } from "../gpuFlag.ts";
import { display } from "./display.ts";
import { readFleetStatus } from "./fleetStatus.ts";
import { mixedTraffic } from "./mixedTraffic.ts";
import { Player } from "./player.ts";
import { summaryLine, type DemoView } from "./screen.ts";
import { Tally } from "./tally.ts";
import { traceTraffic } from "./traceTraffic.ts";
import type { Traffic } from "./traffic.ts";

interface DemoFlags {
  readonly engines: number;
  readonly model: string;
  readonly gpu: string;
  readonly timeScale: number;
  readonly rate: number;
  readonly trace?: string;
  readonly speed: number;
  readonly policy: (typeof POLICY_NAMES)[number];
  readonly port: number;
  readonly adminPort: number;
  readonly seconds?: number;
  readonly seed: number;
}

const MAX_IN_FLIGHT = 2_000;
/** Mooncake's prompts go up to 125,000 tokens. */
const CONTEXT_TOKENS = 131_072;

/** `kvasir demo`, which `npm start` runs: an emulated fleet, the gateway in front of it, and live traffic. */
export function demoCommand(): Command {
  return new Command("demo")
    .description("run an emulated fleet, the gateway and live traffic; nothing else is needed")
    .option("--engines <n>", "how many emulated engines", integer(1, 64), 8)
    .option("--model <name>", "model that they pretend to serve", "qwen3-32b")
    .option("--gpu <gpu>", "GPU that they pretend to run on", "h200_tp2")
    .option("--time-scale <x>", "real time per modelled time; 0.5 is twice as fast", positive, 1)
    .option("--rate <n>", "chats a second", positive, 12)
    .option(
      "--trace <file>",
      "play a trace instead of the mixture: Mooncake or Bailian JSON lines, Azure or BurstGPT CSV",
    )
    .option("--speed <x>", "play the trace so many times as fast", positive, 1)
    .addOption(new Option("--policy <name>", "how a replica is chosen").choices(POLICY_NAMES).default("kvasir"))
    .option("-p, --port <port>", "port for clients; 0: any", integer(0, 65_535), 8080)
    .option("--admin-port <port>", "port of the status page and metrics; 0: any", integer(0, 65_535), 9091)
    .option("--seconds <n>", "stop after this long; without it, at Ctrl-C", positive)
    .option("--seed <n>", "seed of the traffic", integer(0, 2 ** 32 - 1), 1)
    .action(demo);
}

async function demo(flags: DemoFlags, command: Command): Promise<void> {
  refuseUnknownGpu(flags, command);
  const traffic = trafficOf(flags, command);
  const stopping = new AbortController();
  const stop = (): void => (stopping.signal.aborted ? process.exit(130) : stopping.abort());
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  const timer = flags.seconds === undefined ? null : setTimeout(stop, flags.seconds * 1000);

  const engines = await startEngines(flags);
  let router: RunningRouter | null = null;
  try {
    router = await startRouter(configOf(flags, engines));
    await served(router, flags.model, stopping.signal);
    await play(flags, router, traffic, stopping);
  } finally {
    if (timer !== null) clearTimeout(timer);
    await router?.stop();
    await Promise.all(engines.map((engine) => engine.stop()));
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
  }
}

async function play(
  flags: DemoFlags,
  router: RunningRouter,
  traffic: Traffic,
  stopping: AbortController,
): Promise<void> {
  const tally = new Tally();
  const player = new Player({
    url: router.url,
    model: flags.model,
    traffic,
    maxInFlight: MAX_IN_FLIGHT,
    onResult: (result) => tally.add(result),
  });
  const startMs = performance.now();
  const adminUrl = router.adminUrl ?? "";
  const view = async (): Promise<DemoView> => ({
    fleet: `${flags.engines} emulated engines, ${flags.model} on ${flags.gpu}, policy ${flags.policy}`,
    gatewayUrl: router.url,
    statusUrl: `${adminUrl}/`,
    curl: curlLine(router.url, flags.model),
    elapsedS: (performance.now() - startMs) / 1000,
    sent: player.sent,
    inFlight: player.inFlight,
    answered: tally.answered,
    failed: player.failed,
    ttftP50Ms: tally.ttftMs(0.5),
    ttftP99Ms: tally.ttftMs(0.99),
    cachedShare: tally.cachedShare,
    outputTokens: tally.outputTokens,
    ...(await readFleetStatus(adminUrl, tally)),
  });
  stopping.signal.addEventListener("abort", () => player.stop(), { once: true });
  const shown = display(view, process.stdout, stopping.signal);
  await player.run();
  stopping.abort();
  await shown;
  process.stdout.write(`\n${summaryLine(await view())}\nstopped\n`);
}

/** Ends the program with the reason where a trace cannot be read. */
function trafficOf({ trace, speed, rate, timeScale, seed }: DemoFlags, command: Command): Traffic {
  if (trace === undefined) return mixedTraffic(rate, new SeededRandom(seed));
  try {
    return traceTraffic(readTrace(trace), speed / timeScale, seed);
  } catch (caught) {
    if (caught instanceof TraceError) command.error(`error: ${caught.message}`);
    throw caught;
  }
}

function startEngines({ engines, model, gpu, timeScale }: DemoFlags): Promise<EmulatedEngine[]> {
  return Promise.all(
    Array.from({ length: engines }, () =>
      startEmulatedEngine({ model, gpu, timeScale, maxModelTokens: CONTEXT_TOKENS }),
    ),
  );
}

function configOf({ port, adminPort, policy }: DemoFlags, engines: readonly EmulatedEngine[]) {
  return configFrom({
    listen: { host: "127.0.0.1", port },
    admin: { port: adminPort },
    engines: engines.map(({ url, options: { prior, maxRunning } }) => ({
      url,
      maxRunningRequests: maxRunning,
      ...(prior === null ? {} : { prior }),
    })),
    policy,
    log: { level: "silent" },
  });
}

/** Resolves once every engine's model is known to the router, or when the demo is stopped first. */
async function served(router: RunningRouter, model: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && router.fleet.pool(model).length < router.fleet.replicas().length) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function curlLine(url: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 32 });
  return `curl -i ${url}/v1/chat/completions -H 'content-type: application/json' -H 'x-kvasir-explain: 1' -d '${body}'`;
}
