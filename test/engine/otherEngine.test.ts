import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { engines } from "./engines.ts";
import { assertEqual, type Prompt } from "./indexEquality.ts";
import { freePorts, startEngine, stopEngine, type Engine } from "./kit/engine.ts";
import { complete, TokenPrompts } from "./prompts.ts";
import { setUp } from "./routerSetup.ts";
import { assertEqualTokens } from "./tokenEquality.ts";
import { Truth } from "./truth.ts";

describe("an engine with another tokenizer and larger blocks", () => {
  let other: Engine;
  before(async () => {
    const { runFolder } = engines[0]!;
    other = await startEngine({
      model: "llama",
      aliases: ["target"],
      blockTokens: 64,
      blocks: 256,
      adapters: false,
      ports: await freePorts(),
      runFolder,
    });
  });
  after(() => stopEngine(other));

  it("has the router's tokens, over awkward conversations, with the tokenizer of Llama", async () => {
    await using truth = await Truth.of(other);
    await assertEqualTokens(other, truth);
  });

  it("shares a pool with one that has smaller blocks, and each hit is known in its own", async () => {
    const [first] = engines;
    await using setup = await setUp([first!, other]);
    await using small = await Truth.of(first!);
    await using large = await Truth.of(other);
    assert.equal(setup.router.fleet.blockTokens("target"), 32);
    const make = new TokenPrompts(10);
    const stems = Array.from({ length: 4 }, () => make.ids(200 + make.below(300)));
    const prompts: Prompt[] = [];
    const off: string[] = [];
    for (let at = 0; at < 40; at++) {
      const ids = [...stems[make.below(4)]!.slice(0, 100 + make.below(400)), ...make.ids(1 + make.below(80))];
      prompts.push({ ids, kind: {} });
      const { usage } = await complete(setup.url, ids, {}, 2);
      const [decision] = setup.router.decisions.recent(1);
      const predicted = decision!.cachedTokens(decision!.chosen);
      const reported = usage.prompt_tokens_details.cached_tokens;
      if (predicted !== reported) off.push(`${predicted} for ${reported} on ${decision!.replicaId}`);
    }
    await assertEqual(setup.router, [small, large], prompts);
    assert.ok(off.length <= 1, off.join(", "));
  });
});
