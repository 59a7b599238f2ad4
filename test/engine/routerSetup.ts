import { configFrom } from "#src/config/loadConfig.ts";
import type { ConfigInput } from "#src/config/schema.ts";
import { startRouter, type RunningRouter } from "#src/gateway/router.ts";
import { RequestLog } from "#src/telemetry/requestLog.ts";
import type { Engine } from "./kit/engine.ts";
import { modelFolder } from "./kit/install.ts";

export interface Setup extends AsyncDisposable {
  readonly router: RunningRouter;
  readonly url: string;
  readonly adminUrl: string;
  /** Log lines so far, parsed. */
  readonly logged: Record<string, unknown>[];
}

/** The configuration of one engine as an operator writes it. */
export function engineInput({ url, events, replay, topic }: Engine) {
  return { url, maxRunningRequests: 16, kvEvents: { endpoint: events, replayEndpoint: replay, topic } };
}

/** A router in front of engines, started and ready. Unless `live` is false, it knows exactly what they hold. */
export async function setUp(
  engines: readonly Engine[],
  input: ConfigInput = {},
  { live = true }: { readonly live?: boolean } = {},
): Promise<Setup> {
  const logged: Record<string, unknown>[] = [];
  const log = new RequestLog({
    level: "debug",
    destination: { write: (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const models = Object.fromEntries(engines.map(({ model }) => [model, { tokenizer: modelFolder(model) }]));
  const config = configFrom({
    engines: engines.map(engineInput),
    models,
    ...input,
    listen: { host: "127.0.0.1", port: 0 },
    admin: { port: 0 },
  });
  const router = await startRouter(config, { log, seed: 1 });
  const setup: Setup = {
    router,
    url: router.url,
    adminUrl: router.adminUrl ?? "",
    logged,
    [Symbol.asyncDispose]: () => router.stop(),
  };
  try {
    await until("the router is ready", async () => (await fetch(`${router.url}/readyz`)).ok);
    if (live) await until("all views are live", () => viewStates(router).every((state) => state === "live"));
    await until("all engines are identified", () => router.fleet.replicas().every(({ profile }) => profile !== null));
    return setup;
  } catch (caught) {
    await router.stop();
    console.error(logged.slice(-40));
    throw caught;
  }
}

export function viewStates({ fleet }: RunningRouter): string[] {
  return fleet.replicas().map(({ index }) => fleet.index.view(index).state.state);
}

/** Polls for a condition; fails with its name after half a minute. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limitMs = 30_000,
): Promise<NonNullable<T>> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > endMs) throw new Error(`not so within ${limitMs / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The engine forgets all blocks; its events tell of it with the next batch. */
export async function resetCache({ url }: Engine): Promise<void> {
  const answer = await fetch(`${url}/reset_prefix_cache`, { method: "POST" });
  if (!answer.ok) throw new Error(`${url}/reset_prefix_cache: ${answer.status} ${await answer.text()}`);
}

/** Calls an API with JSON; throws unless it succeeds. */
export async function post<T>(url: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
  return JSON.parse(text) as T;
}
