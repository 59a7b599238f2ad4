#!/usr/bin/env node
// Kvasir runs TypeScript directly, which takes Node 24. Where the system's node is older, the runtime that npm
// installed beside this package takes over; with neither, say so instead of failing on a syntax error.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const major = Number(process.versions.node.split(".")[0]);

if (major >= 24) {
  // Stripping types takes most of a start; the second start finds it done.
  module.enableCompileCache();
  await import("../src/cli/main.ts");
} else {
  const bundled = join(root, "node_modules", ".bin", process.platform === "win32" ? "node.cmd" : "node");
  if (!existsSync(bundled)) {
    process.stderr.write(
      `kvasir needs Node 24 or newer; this is ${process.version}. Run npm ci in ${root}, which brings it.\n`,
    );
    process.exit(1);
  }
  handOver(spawn(bundled, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" }));
}

/** This process stands for `child`: signals go through, and it ends as the child ends. */
function handOver(child) {
  const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"];
  // A terminal sends Ctrl-C to the whole group, so the child has it already; a signal to this process alone it has not.
  for (const signal of signals) {
    process.on(signal, () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child.on("error", (cause) => {
    process.stderr.write(`kvasir could not start ${child.spawnfile}: ${cause.message}\n`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}
