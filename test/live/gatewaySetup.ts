import { processClock, type Clock } from "#src/determinism/clock.ts";
import { configFrom } from "#src/config/loadConfig.ts";
import type { ConfigInput } from "#src/config/schema.ts";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import type { EmulatedEngineOptions } from "#src/emulator/engineOptions.ts";
import { startRouter, type RunningRouter } from "#src/gateway/router.ts";
import { RequestLog } from "#src/telemetry/requestLog.ts";

export const MODEL = "qwen3-32b";

/** Fast engines on which nothing is random but the words. */
export const FAST: EmulatedEngineOptions = { model: MODEL, timeScale: 0.02, keepReceived: 100 };

export interface Setup extends AsyncDisposable {
  readonly router: RunningRouter;
  readonly engines: readonly EmulatedEngine[];
  readonly url: string;
  readonly adminUrl: string;
  /** Log lines so far, parsed. */
  readonly logged: Record<string, unknown>[];
}

/** Engines, and a router in front of them that takes requests. */
export async function setUp(
  engineOptions: readonly EmulatedEngineOptions[],
  input: ConfigInput = {},
  ready = engineOptions.length,
  clock: Clock = processClock,
): Promise<Setup> {
  const engines = await Promise.all(engineOptions.map((options) => startEmulatedEngine({ ...FAST, ...options })));
  const logged: Record<string, unknown>[] = [];
  const log = new RequestLog({
    level: "debug",
    destination: { write: (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const config = configFrom({
    engines: engines.map(({ url }) => url),
    ...input,
    listen: { host: "127.0.0.1", port: 0, ...input.listen },
    admin: { port: 0, ...input.admin },
  });
  const router = await startRouter(config, { log, seed: 1, clock });
  const setup = {
    router,
    engines,
    url: router.url,
    adminUrl: router.adminUrl ?? "",
    logged,
    async [Symbol.asyncDispose]() {
      await router.stop();
      await Promise.all(engines.map((engine) => engine.stop()));
    },
  };
  try {
    if (ready > 0) await until(`${ready} replicas are ready`, () => routable(router) >= ready);
  } catch (caught) {
    await setup[Symbol.asyncDispose]();
    throw caught;
  }
  return setup;
}

export function routable(router: RunningRouter): number {
  return router.fleet.replicas().filter(({ lifecycle, profile }) => profile !== null && lifecycle.state === "ready")
    .length;
}

/** Polls for a condition; fails with its name after half a minute, which only a busy machine comes near. */
export async function until<T>(what: string, condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  const endMs = performance.now() + 30_000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > endMs) throw new Error(`not so within thirty seconds: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function chat(
  url: string,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({
      model: MODEL,
      messages: [{ role: "user", content: "Say something." }],
      max_tokens: 8,
      ...body,
    }),
  });
}
