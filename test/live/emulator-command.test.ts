import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { chat, until } from "./emulatorHelp.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

interface Running {
  readonly process: ChildProcess;
  readonly output: () => string;
}

function kvasirEmulate(t: TestContext, ...flags: string[]): Running {
  const child = spawn(process.execPath, [MAIN, "emulate", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (output += part.toString()));
  return { process: child, output: () => output };
}

function readyUrls(output: string): string[] {
  return [...output.matchAll(/^ready (\S+) my-model$/gm)].map(([, url = ""]) => url);
}

it("kvasir emulate prints where its engines are, and ends on Ctrl-C with streams open", async (t) => {
  const flags = ["--count", "3", "--port", "0", "--model", "my-model", "--lora", "a", "b", "--block-size", "32"];
  const { process: child, output } = kvasirEmulate(t, ...flags);
  await until(() => readyUrls(output()).length === 3 && output().includes("Ctrl-C"));
  assert.match(output(), /my-model on h100 is not in the table/);
  const engines = readyUrls(output()).map((url) => ({ url, model: "my-model" }));
  for (const engine of engines) {
    const { data } = (await (await fetch(`${engine.url}/v1/models`)).json()) as { data: { id: string }[] };
    assert.deepEqual(
      data.map(({ id }) => id),
      ["my-model", "a", "b"],
    );
  }
  const [first] = engines;
  assert.ok(first !== undefined);
  const stream = await chat(first, { maxTokens: 20_000, stream: true });
  child.kill("SIGINT");
  const [code] = (await once(child, "exit")) as [number | null];
  assert.equal(code, 0);
  await assert.rejects(stream.text());
});

it("kvasir emulate says what is wrong: a bad value, a port in use", async (t) => {
  const bad = kvasirEmulate(t, "--count", "0");
  const [code] = (await once(bad.process, "exit")) as [number | null];
  assert.notEqual(code, 0);
  await until(() => bad.output().includes("from 1 to 256"));

  const one = kvasirEmulate(t, "--port", "0", "--model", "my-model");
  await until(() => readyUrls(one.output()).length === 1);
  const { port } = new URL(readyUrls(one.output())[0] ?? "");
  const two = kvasirEmulate(t, "--port", port, "--model", "my-model");
  const [taken] = (await once(two.process, "exit")) as [number | null];
  assert.equal(taken, 1);
  assert.match(two.output(), new RegExp(`Port ${port}`));
});
