// CPU of each router per request and per streamed event, and the time to first byte that it adds, side by side.
//
//   npm run bench:routers -- [--only kvasir,nginx] [--rounds 3] [--json FILE]
//
// The router runs on core 0; engines that answer at once and the load share core 1. Figures are the process's own CPU
// time, so they hold on a busy machine; compare within one run. Routers take turns, and each is warmed up by the same
// work before it is measured. Linux with taskset; peers come from Debian and PyPI.
import { spawn, type ChildProcess } from "node:child_process";
import { openSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { cpuSeconds, residentBytes } from "./cpu.ts";
import { peers, type Peer } from "./peers.ts";

const { values: flags } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "3" },
    json: { type: "string" },
    quick: { type: "boolean", default: false },
  },
});

const ENGINES = [19101, 19102, 19103, 19104];
const FIRST_PORT = 19200;
const scale = flags.quick ? 0.25 : 1;
/** Node optimises a path over some ten thousand runs of it; a router in use has had those. */
const SCENARIOS = [
  { kind: "unary2k", warmUp: 40_000 * scale, requests: 20_000 * scale },
  { kind: "unary220k", warmUp: 3_000 * scale, requests: 3_000 * scale },
  { kind: "stream", warmUp: 384 * scale, requests: 384 * scale },
] as const;

/** What is sent at 100 requests a second, to see the time that a router adds to the first byte. */
const PACED = ["unary2k", "unary220k"] as const;
const PACED_REQUESTS = 500;

const logs = openSync("/dev/null", "w");

function start(core: number, command: readonly string[]): ChildProcess {
  return spawn("taskset", ["-c", String(core), ...command], {
    stdio: ["ignore", logs, process.env["BENCH_VERBOSE"] ? "inherit" : logs],
  });
}

async function listening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt++) {
    const socket = connect(port, "127.0.0.1");
    const up = await Promise.race([
      once(socket, "connect").then(() => true),
      once(socket, "error").then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (up) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`nothing listens on ${port}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), 5000);
  await ended;
  clearTimeout(killer);
}

interface LoadLine {
  answers: number;
  events: number;
  failures: number;
  firstByteP50Ms: number;
  firstByteP99Ms: number;
}

async function load(
  port: number,
  kind: string,
  requests: number,
  connections: number,
  rate?: number,
): Promise<LoadLine> {
  const command = [
    process.execPath,
    join(import.meta.dirname, "load.ts"),
    port,
    kind,
    Math.round(requests),
    connections,
    ...(rate === undefined ? [] : [rate]),
  ];
  const child = spawn("taskset", ["-c", "1", ...command.map(String)], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (bytes: Buffer) => (text += bytes.toString()));
  const killer = setTimeout(() => child.kill("SIGKILL"), 120_000);
  const [code] = (await once(child, "exit")) as [number | null];
  clearTimeout(killer);
  if (code !== 0) throw new Error(`the load on ${port} failed`);
  return JSON.parse(text) as LoadLine;
}

function portOf(peer: Peer, index: number): number {
  const at = peer.command.indexOf("--port");
  return at >= 0 ? Number(peer.command[at + 1]) : FIRST_PORT + index;
}

const figures = new Map<string, Map<string, number[]>>();
function note(peer: string, figure: string, value: number): void {
  const row = figures.get(peer) ?? new Map<string, number[]>();
  figures.set(peer, row);
  row.set(figure, [...(row.get(figure) ?? []), value]);
}
const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;

const engines = start(1, [process.execPath, join(import.meta.dirname, "backend.ts"), ...ENGINES.map(String)]);
const chosen = peers(FIRST_PORT, ENGINES).filter(
  (peer) => flags.only === undefined || flags.only.split(",").includes(peer.name),
);
try {
  await Promise.all(ENGINES.map(listening));
  for (let round = 0; round < Number(flags.rounds); round++) {
    const directMs = new Map<string, number>();
    for (const kind of PACED) {
      const { firstByteP50Ms } = await load(ENGINES[0] ?? 0, kind, PACED_REQUESTS, 16, 100);
      note("direct", `${kind} TTFB ms`, firstByteP50Ms);
      directMs.set(kind, firstByteP50Ms);
    }
    for (const peer of chosen) {
      const port = peer.name === "nginx" ? FIRST_PORT + 10 : portOf(peer, 0);
      const router = start(0, peer.command);
      try {
        await listening(port);
        const pid = router.pid ?? 0;
        await new Promise((resolve) => setTimeout(resolve, 3000));
        for (const { kind, warmUp, requests } of SCENARIOS) {
          await load(port, kind, warmUp, 64);
          const before = cpuSeconds(pid);
          const result = await load(port, kind, requests, 64);
          const usedUs = (cpuSeconds(pid) - before) * 1e6;
          if (result.failures > 0) throw new Error(`${peer.name}: ${result.failures} failed answers in ${kind}`);
          note(
            peer.name,
            kind === "stream" ? "stream µs/event" : `${kind} µs/req`,
            usedUs / (kind === "stream" ? result.events : result.answers),
          );
        }
        for (const kind of PACED) {
          const { firstByteP50Ms } = await load(port, kind, PACED_REQUESTS, 16, 100);
          note(peer.name, `${kind} TTFB ms`, firstByteP50Ms);
          note(peer.name, `${kind} added ms`, firstByteP50Ms - directMs.get(kind)!);
        }
        note(peer.name, "RSS MiB", residentBytes(pid) / 2 ** 20);
        process.stderr.write(`round ${round + 1}: ${peer.name} done\n`);
      } finally {
        await stop(router);
      }
    }
  }
} finally {
  await stop(engines);
}

const columns = [
  "unary2k µs/req",
  "unary220k µs/req",
  "stream µs/event",
  "unary2k TTFB ms",
  "unary2k added ms",
  "unary220k TTFB ms",
  "unary220k added ms",
  "RSS MiB",
];
console.log(`| router | ${columns.join(" | ")} |\n|${" --- |".repeat(columns.length + 1)}`);
for (const [name, row] of figures) {
  const cells = columns.map((column) => {
    const values = row.get(column);
    return values === undefined ? "" : median(values).toFixed(column.includes("µs") ? 1 : 2);
  });
  console.log(`| ${name} | ${cells.join(" | ")} |`);
}
if (flags.json !== undefined) {
  writeFileSync(
    flags.json,
    JSON.stringify(Object.fromEntries([...figures].map(([name, row]) => [name, Object.fromEntries(row)])), null, 2),
  );
}
