import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { engines } from "./engines.ts";
import { assertEqual, type Prompt } from "./indexEquality.ts";
import { complete, TokenPrompts } from "./prompts.ts";
import { setUp } from "./routerSetup.ts";
import { Truth } from "./truth.ts";

describe("a router that starts after its engines", () => {
  it("knows when it is ready what they hold, and loses no hit", async () => {
    const make = new TokenPrompts(7);
    const prompts: (Prompt & { readonly on: number })[] = [];
    for (let at = 0; at < 12; at++) {
      const prompt = { ids: make.ids(320 + make.below(200)), kind: {}, on: at % 2 };
      prompts.push(prompt);
      await complete(engines[prompt.on]!.url, prompt.ids);
    }
    await using setup = await setUp(engines);
    assert.ok(setup.logged.some(({ msg }) => msg === "what the engines hold is known"));
    await using first = await Truth.of(engines[0]!);
    await using second = await Truth.of(engines[1]!);
    await assertEqual(setup.router, [first, second], prompts);
    for (const { ids, on } of prompts) {
      const answer = await complete(setup.url, [...ids, 1]);
      const [decision] = setup.router.decisions.recent(1);
      assert.equal(decision!.replicaId, new URL(engines[on]!.url).host);
      const blocks = Math.floor(ids.length / 32);
      assert.equal(answer.usage.prompt_tokens_details.cached_tokens, 32 * blocks);
    }
  });

  it("finds their events by asking them, where nobody has said where they are", async () => {
    await using setup = await setUp(engines, { engines: engines.map(({ url }) => url) });
    const ids = new TokenPrompts(11).ids(400);
    await complete(engines[1]!.url, ids);
    await using truth = await Truth.of(engines[1]!);
    await assertEqual(setup.router, [truth], [{ ids, kind: {} }]);
  });
});
