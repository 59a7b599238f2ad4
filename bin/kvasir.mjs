#!/usr/bin/env node
// Kvasir runs TypeScript directly, which takes Node 24. Where the system's node is older, the runtime that npm
// installed beside this package takes over; with neither, say so instead of failing on a syntax error.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const major = Number(process.versions.node.split(".")[0]);

if (major >= 24) {
  await import("../src/cli/main.ts");
} else {
  const bundled = join(root, "node_modules", ".bin", process.platform === "win32" ? "node.cmd" : "node");
  if (!existsSync(bundled)) {
    process.stderr.write(
      `kvasir needs Node 24 or newer; this is ${process.version}. Run npm ci in ${root}, which brings it.\n`,
    );
    process.exit(1);
  }
  const run = spawnSync(bundled, [join(root, "src/cli/main.ts"), ...process.argv.slice(2)], { stdio: "inherit" });
  process.exit(run.status ?? 1);
}
