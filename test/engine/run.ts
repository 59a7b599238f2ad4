import { spawn } from "node:child_process";
import { glob, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { freePorts, startEngine, stopEngines, type EngineSpec } from "./kit/engine.ts";
import { ENGINE_FOLDER, findPython, install } from "./kit/install.ts";

/*
 * `npm run test:engine`: installs vLLM for CPUs once, starts two engines that all test files share, and runs the files
 * one after another. `-- <file>...` runs only those files.
 */

const only = process.argv.slice(2);
const python = await findPython();
if (python === null) skip("Python 3.11 or newer is not there", false);
else process.exitCode = await main(python);

async function main(python: string): Promise<number> {
  const startedMs = performance.now();
  const sayTime = (what: string): void =>
    console.error(`${what} after ${Math.round((performance.now() - startedMs) / 1000)} s`);
  try {
    await install(python);
  } catch (caught) {
    skip(`the engine cannot be installed: ${caught instanceof Error ? caught.message : String(caught)}`, true);
    return process.env.CI === undefined ? 0 : 1;
  }
  sayTime("the engine is installed");
  const runs = join(ENGINE_FOLDER, "run");
  await mkdir(runs, { recursive: true });
  const runFolder = await mkdtemp(join(runs, "suite-"));
  const specs: EngineSpec[] = [];
  for (let at = 0; at < 2; at++)
    specs.push({ model: "target", blockTokens: 32, blocks: 512, adapters: true, ports: await freePorts(), runFolder });
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void stopEngines(runFolder).finally(() => process.exit(1)));
  try {
    const engines = await Promise.all(specs.map(startEngine));
    sayTime("two engines are ready");
    const status = await runTests({ KVASIR_TEST_ENGINES: JSON.stringify(engines) });
    sayTime("all test files ended");
    await stopEngines(runFolder);
    // Logs stay where something went wrong.
    if (status === 0) await rm(runFolder, { recursive: true });
    return status;
  } finally {
    await stopEngines(runFolder).catch(() => undefined);
  }
}

async function runTests(environment: Record<string, string>): Promise<number> {
  const files = [...only];
  if (only.length === 0) for await (const file of glob(join(import.meta.dirname, "*.test.ts"))) files.push(file);
  files.sort();
  const flags = ["--test", "--test-concurrency=1", "--test-timeout=1800000"];
  const child = spawn(process.execPath, [...flags, ...files], {
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

function skip(why: string, isFailureInCi: boolean): void {
  const frame = "!".repeat(100);
  const more = isFailureInCi && process.env.CI !== undefined ? "This is a failure, as this is CI." : "";
  console.error(`${frame}\nSKIPPED, NOTHING WAS TESTED ON A REAL ENGINE: ${why}. ${more}\n${frame}`);
}
