import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Worker } from "node:worker_threads";
import { TokenIdentities, type TokenIdentitiesOptions } from "#src/request/tokenIdentities.ts";
import { TokenFallback } from "#src/request/tokens/tokenFallback.ts";
import { writeSmallTokenizer } from "../unit/emulator/smallTokenizer.ts";

const CHAIN = { adapter: null, salt: null, blockTokens: 16 };
const body = (text: string): Buffer => Buffer.from(JSON.stringify({ prompt: text }));

describe("token threads", () => {
  let folder: string;
  before(async () => {
    folder = await writeSmallTokenizer(await mkdtemp(join(tmpdir(), "kvasir-threads-")));
  });
  after(() => rm(folder, { recursive: true }));

  async function make(options: TokenIdentitiesOptions): Promise<TokenIdentities> {
    const tokens = new TokenIdentities(options);
    assert.deepEqual(await tokens.load(new Map([["m", { folder }]])), new Map());
    return tokens;
  }

  const reasonOf = (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => "none",
      (caught: unknown) => (caught instanceof TokenFallback ? caught.reason : String(caught)),
    );

  it("tell equal prompts alike, whichever thread is asked", async () => {
    const tokens = await make({ threads: 3 });
    const asked = Array.from({ length: 12 }, () =>
      tokens.identify("m", "completions", body("the new map ".repeat(90)), CHAIN),
    );
    const [first, ...others] = await Promise.all(asked);
    assert.ok(first!.hashes.length > 10);
    assert.equal(first!.hashes.length, Math.floor(first!.promptTokens / 16));
    for (const other of others) assert.deepEqual(other, first);
    const salted = await tokens.identify("m", "completions", body("the new map ".repeat(90)), { ...CHAIN, salt: "x" });
    assert.notEqual(salted.hashes[0], first!.hashes[0]);
    await tokens.close();
  });

  it("refuse what finds no room, by number and by bytes, and take the rest", async () => {
    for (const limits of [{ maxQueuedTasks: 4 }, { maxQueuedBytes: 4 * body("all").length }]) {
      const tokens = await make(limits);
      const reasons = await Promise.all(
        Array.from({ length: 10 }, () => reasonOf(tokens.identify("m", "completions", body("all"), CHAIN))),
      );
      assert.deepEqual(reasons, [...Array<string>(4).fill("none"), ...Array<string>(6).fill("overloaded")]);
      assert.equal(await reasonOf(tokens.identify("m", "completions", body("x".repeat(5000)), CHAIN)), "none");
      await tokens.close();
    }
  });

  it("that die over a prompt fail that one alone, and come back", async () => {
    const workers: Worker[] = [];
    const onWorker = (worker: Worker): void => void workers.push(worker);
    process.on("worker", onWorker);
    const tokens = await make({});
    const asked = tokens.identify("m", "completions", body("the new map ".repeat(200_000)), CHAIN);
    assert.equal(workers.length, 1);
    await workers[0]!.terminate();
    assert.equal(await reasonOf(asked), "tokenizer_failed");
    assert.equal(await reasonOf(tokens.identify("m", "completions", body("all"), CHAIN)), "none");
    assert.equal(workers.length, 2);
    process.off("worker", onWorker);
    await tokens.close();
  });

  it("keep what they have where something new cannot be loaded, and answer nothing once closed", async () => {
    const tokens = await make({});
    const problems = await tokens.load(new Map([["n", { folder: join(folder, "nowhere") }]]));
    assert.deepEqual([...problems.keys()], ["n"]);
    assert.equal(tokens.has("m"), true);
    assert.equal(tokens.has("n"), false);
    assert.equal(await reasonOf(tokens.identify("m", "completions", body("all"), CHAIN)), "none");
    const late = reasonOf(tokens.identify("m", "completions", body("all"), CHAIN));
    await tokens.close();
    assert.ok(["none", "tokenizer_failed"].includes(await late));
    assert.equal(await reasonOf(tokens.identify("m", "completions", body("all"), CHAIN)), "overloaded");
  });
});
