// Does the router's memory stay flat? Sends it requests with unique prompts and prints how large its process is.
// usage: node bench/soak.ts [--requests 200000] [--connections 32] [--bytes 2000]
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Pool } from "undici";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "200000" },
    connections: { type: "string", default: "32" },
    bytes: { type: "string", default: "2000" },
  },
});
const requests = Number(values.requests);
const connections = Number(values.connections);
const bytes = Number(values.bytes);

const PORTS = { router: 19_080, admin: 19_081, engines: [19_090, 19_091, 19_092, 19_093] };
const ROWS = 20;
/** One request in so many is streamed. */
const STREAMED_EVERY = 8;
const root = join(import.meta.dirname, "..");

const children: ChildProcess[] = [];
function start(script: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn(process.execPath, [join(root, script), ...args], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, ...env },
  });
  children.push(child);
  return child;
}

async function stop(): Promise<void> {
  for (const child of children) if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "close");
}

const admin = new Pool(`http://127.0.0.1:${PORTS.admin}`);
const clients = new Pool(`http://127.0.0.1:${PORTS.router}`, { connections });

async function metrics(): Promise<string> {
  const { body } = await admin.request({ method: "GET", path: "/metrics" });
  return body.text();
}

/** The sum over all series of a metric. */
function sum(text: string, name: string): number {
  let total = 0;
  for (const [, value] of text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"))) total += Number(value);
  return total;
}

async function untilReady(): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const text = await metrics().catch(() => "");
    if (sum(text, "kvasir_replica_routable") === PORTS.engines.length) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the router does not get ready");
}

const FILLER = "words that fill up a prompt ".repeat(Math.ceil(bytes / 28));

/** Unique from its first words on, so that nothing of it is cached anywhere. */
function body(at: number): string {
  const content = `request ${at} of this soak, ${FILLER.slice(0, Math.max(0, bytes - 40))}`;
  const stream = at % STREAMED_EVERY === 0;
  return JSON.stringify({ model: "bench-model", messages: [{ role: "user", content }], max_tokens: 4, stream });
}

async function ask(at: number): Promise<void> {
  const { statusCode, body: answer } = await clients.request({
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json" },
    body: body(at),
  });
  await answer.dump();
  if (statusCode !== 200) throw new Error(`request ${at}: ${statusCode}`);
}

try {
  start("bench/routers/backend.ts", PORTS.engines.map(String), { BENCH_EVENTS: "2", BENCH_EVENT_EVERY_MS: "1" });
  const engines = PORTS.engines.flatMap((port) => ["--engine", `http://127.0.0.1:${port}`]);
  start("bin/kvasir.mjs", [
    "serve",
    "--host",
    "127.0.0.1",
    "--port",
    String(PORTS.router),
    "--admin-port",
    String(PORTS.admin),
    ...engines,
  ]);
  await untilReady();

  console.log(`${requests} requests, ${bytes} bytes of unique prompt each, ${connections} connections\n`);
  console.log("  requests   resident MiB   indexed blocks   CPU s");
  let next = 0;
  const resident: number[] = [];
  for (let row = 1; row <= ROWS; row++) {
    const end = Math.round((requests * row) / ROWS);
    await Promise.all(
      Array.from({ length: connections }, async () => {
        while (next < end) await ask(next++);
      }),
    );
    const text = await metrics();
    const mib = sum(text, "kvasir_resident_memory_bytes") / 2 ** 20;
    resident.push(mib);
    const blocks = sum(text, "kvasir_replica_indexed_blocks");
    const cpu = sum(text, "kvasir_cpu_seconds");
    console.log(
      `${String(end).padStart(10)}${mib.toFixed(1).padStart(15)}${String(blocks).padStart(17)}${cpu.toFixed(1).padStart(8)}`,
    );
  }
  // The first quarter fills caches and lets the heap find its size.
  const settled = resident.slice(ROWS / 4);
  const half = Math.floor(settled.length / 2);
  const mean = (of: readonly number[]): number => of.reduce((total, each) => total + each, 0) / of.length;
  const growth = mean(settled.slice(half)) / mean(settled.slice(0, half)) - 1;
  console.log(`\nsecond half of the rest against the first: ${(100 * growth).toFixed(1)} %`);
} finally {
  await Promise.all([admin.destroy(), clients.destroy()]);
  await stop();
}
