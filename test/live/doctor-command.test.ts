import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { writeSmallTokenizer } from "../unit/emulator/smallTokenizer.ts";
import { emulate } from "./emulatorHelp.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

async function kvasirDoctor(...flags: string[]): Promise<{ code: number | null; output: string; errors: string }> {
  const child = spawn(process.execPath, [MAIN, "doctor", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.on("data", (part: Buffer) => (output += part.toString()));
  child.stderr.on("data", (part: Buffer) => (errors += part.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, errors };
}

interface Json {
  readonly counts: unknown;
  readonly engines: readonly { readonly kind: string | null }[];
  readonly findings: readonly { readonly id: string; readonly replica: string | null }[];
}

it("kvasir doctor exits with 0, 1 or 2, and prints text or JSON", async (t) => {
  const engine = await emulate(t, { kvEvents: {} });
  const { code, output } = await kvasirDoctor("-e", engine.url);
  assert.equal(code, 0);
  assert.match(output, /limits_assumed/);
  assert.match(output, /maxRunningRequests/);
  assert.match(output, /tokenizer_missing/);
  assert.match(output, /1 engine: 0 errors, 2 warnings, 0 notes\.\n$/);
  assert.equal((await kvasirDoctor("-e", engine.url, "--strict", "--no-probe")).code, 1);
  assert.equal(engine.stats().submitted, 2);

  const dead = await kvasirDoctor("-e", engine.url, "-e", "http://127.0.0.1:1", "--json");
  assert.equal(dead.code, 1);
  const { counts, engines, findings } = JSON.parse(dead.output) as Json;
  assert.deepEqual(counts, { error: 1, warn: 2, info: 0 });
  assert.deepEqual(
    engines.map(({ kind }) => kind),
    ["vllm", null],
  );
  assert.ok(findings.some(({ id, replica }) => id === "engine_unreachable" && replica === "127.0.0.1:1"));

  assert.deepEqual(await kvasirDoctor(), {
    code: 2,
    output: "",
    errors: "No engines are known: there is nothing to look at.\n",
  });
  assert.match((await kvasirDoctor("-c", "/not/there.yaml")).errors, /not\/there\.yaml/);
});

it("kvasir doctor takes engines and models from a configuration", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "kvasir-doctor-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "kvasir.yaml");
  const tokenizer = await writeSmallTokenizer(join(folder, "tokenizer"));
  const engine = await emulate(t, { kvEvents: {}, tokenizer });
  const models = JSON.stringify({ [engine.model]: { tokenizer }, "not-there": {} });
  await writeFile(file, `engines: [{url: "${engine.url}", maxRunningRequests: 64}]\nmodels: ${models}\n`);
  const { code, output } = await kvasirDoctor("-c", file, "--json");
  assert.equal(code, 1);
  const { findings } = JSON.parse(output) as Json;
  assert.deepEqual(
    findings.map(({ id }) => id),
    ["model_not_served"],
  );
});
