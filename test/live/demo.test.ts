import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, test } from "node:test";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const children: ChildProcess[] = [];

after(() => children.forEach((child) => child.kill("SIGKILL")));

/** Starts the demo on free ports; `until` resolves with all output so far once it matches. */
function startDemo(...flags: string[]) {
  const args = [MAIN, "demo", "--port", "0", "--admin-port", "0", "--engines", "3", "--time-scale", "0.05", ...flags];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let text = "";
  const changed = new EventTarget();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (bytes: Buffer) => {
      text += bytes.toString();
      changed.dispatchEvent(new Event("text"));
    });
  }
  const until = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(text);
      if (match !== null) return match;
      if (child.exitCode !== null) assert.fail(`the demo ended first:\n${text}`);
      await Promise.race([once(changed, "text"), once(child, "exit")]);
    }
  };
  return { child, until, text: () => text };
}

test("the demo answers live traffic, its curl line works, its status page loads, Ctrl-C ends it", async () => {
  const { child, until, text } = startDemo("--rate", "40");
  await until(/[1-9]\d* answered .* 0 failed/);

  const [curl = ""] = await until(/curl -i .*/);
  const shell = spawn("sh", ["-c", curl], { stdio: ["ignore", "pipe", "ignore"] });
  const answer = (await shell.stdout.toArray()).join("");
  assert.match(answer, /^HTTP\/1\.1 200 OK/);
  assert.match(answer, /x-kvasir-explain: .*winner=/i);
  assert.match(answer, /"object":"chat.completion"/);

  const [, statusUrl = ""] = await until(/status page {2}(\S+)/);
  const page = await fetch(statusUrl);
  assert.equal(page.status, 200);
  assert.match(await page.text(), /<title>Kvasir<\/title>/);

  child.kill("SIGINT");
  const [code] = (await once(child, "exit")) as [number | null];
  assert.equal(code, 0, text());
  assert.match(text(), /stopped/);
});

test("the demo plays a Mooncake trace and ends with it", async () => {
  const trace = join(import.meta.dirname, "../recorded/mooncake-conversation-excerpt.jsonl");
  const { child, text } = startDemo("--trace", trace, "--speed", "10");
  const [code] = (await once(child, "exit")) as [number | null];
  assert.equal(code, 0, text());
  assert.match(text(), /20 answered .* 0 failed/);
});

test("a trace that is missing or none, and an unknown GPU, are named before anything starts", async () => {
  for (const [flag, value, reason] of [
    ["--trace", "no-such-trace.jsonl", /^error: no-such-trace\.jsonl cannot be read/m],
    ["--trace", import.meta.filename, /^error: \S+ is no trace/m],
    ["--gpu", "potato", /^error: --gpu potato is not known for qwen3-32b: .*h200_tp2/m],
  ] as const) {
    const { child, text } = startDemo(flag, value);
    const [code] = (await once(child, "exit")) as [number | null];
    assert.equal(code, 1);
    assert.match(text(), reason);
    assert.doesNotMatch(text(), /^ +at /m, "no stack");
  }
});
