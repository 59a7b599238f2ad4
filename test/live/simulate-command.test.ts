import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";

const MAIN = new URL("../../src/cli/main.ts", import.meta.url).pathname;
const run = promisify(execFile);

/** A trace of prompts that share their beginnings, three seconds apart in bursts. */
const TRACE = Array.from({ length: 40 }, (_, at) =>
  JSON.stringify({
    timestamp: 3_000 * Math.floor(at / 8),
    input_length: 1_200,
    output_length: 20,
    hash_ids: [at % 3, 100 + at, 200 + at],
  }),
).join("\n");

describe("kvasir simulate", () => {
  test("writes the same bytes for the same command, and others for another seed", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "kvasir-simulate-"));
    t.after(() => rm(folder, { recursive: true }));
    const trace = join(folder, "trace.jsonl");
    await writeFile(trace, TRACE);
    const simulated = async (name: string, seed: number) => {
      const [json, html] = [join(folder, `${name}.json`), join(folder, `${name}.html`)];
      const flags = `--trace ${trace} --replicas 2 --policy kvasir,round-robin --rate 1,4 --events --seeds 2`;
      const command = `simulate ${flags} --first-seed ${seed} --json ${json} --html ${html}`;
      const { stdout, stderr } = await run(process.execPath, [MAIN].concat(command.split(" ")));
      return { stdout, stderr, json: await readFile(json, "utf8"), html: await readFile(html, "utf8") };
    };
    const [first, again, other] = await Promise.all([simulated("a", 1), simulated("b", 1), simulated("c", 5)]);
    assert.equal(again.json, first.json);
    assert.equal(again.html, first.html);
    assert.equal(again.stdout, first.stdout);
    assert.notEqual(other.json, first.json);
    assert.match(first.stdout, /^rate 1\n.*\nkvasir .*\nround-robin .*\n\nrate 4\n/u);
    assert.match(first.stderr, /^run 1 of 8: kvasir at 1, seed 1\n/u);
    // A page says which command makes it again.
    assert.match(first.html, /kvasir simulate --rate 1,4 .*--events/u);
  });

  test("says what is wrong with its flags", async () => {
    const refused = async (...flags: string[]) => {
      try {
        await run(process.execPath, [MAIN, "simulate", ...flags]);
      } catch (caught) {
        return (caught as { stderr: string }).stderr;
      }
      throw new Error("it was not refused");
    };
    const [nothing, policy, gpu] = await Promise.all([
      refused(),
      refused("--shape", "chat", "--policy", "nobody"),
      refused("--shape", "chat", "--gpu", "tpu"),
    ]);
    assert.match(nothing, /give either --trace or --shape/u);
    assert.match(policy, /policy: "nobody" is not allowed/u);
    assert.match(gpu, /nothing is known of qwen3-32b on tpu/u);
    assert.doesNotMatch(nothing + policy + gpu, /\n\s+at /u);
  });
});
