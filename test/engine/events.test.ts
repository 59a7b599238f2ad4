import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { engines } from "./engines.ts";
import { assertEqual, type Prompt } from "./indexEquality.ts";
import { complete, TokenPrompts } from "./prompts.ts";
import { resetCache, setUp, until } from "./routerSetup.ts";
import { Truth, type Kind } from "./truth.ts";

describe("the index over a real engine's events", () => {
  it("holds what an independent subscriber holds: shared prefixes, adapters, salts, eviction, traffic of others", async () => {
    await using setup = await setUp(engines);
    await using first = await Truth.of(engines[0]!);
    await using second = await Truth.of(engines[1]!);
    const truths = [first, second];
    const make = new TokenPrompts(1);
    const prompts: Prompt[] = [];
    const kinds: Kind[] = [{}, {}, { adapter: "adapter-a" }, { adapter: "adapter-b" }, { salt: "tenant-1" }];
    const stems = Array.from({ length: 6 }, () => make.ids(32 * (2 + make.below(12)) + make.below(32)));
    for (let at = 0; at < 80; at++) {
      const ids = [...stems[make.below(stems.length)]!, ...make.ids(make.below(400))];
      const prompt = { ids, kind: kinds[make.below(kinds.length)]! };
      prompts.push(prompt);
      // Every fourth comes by another way, as with a second router.
      const url = at % 4 === 0 ? engines[make.below(2)]!.url : setup.url;
      await complete(url, prompt.ids, prompt.kind, 1 + make.below(40));
    }
    await assertEqual(setup.router, truths, prompts);
    assert.ok(first.storedBlocks > 50 && second.storedBlocks > 50, "both engines were used");

    const before = first.removedBlocks + second.removedBlocks;
    for (let at = 0; at < 24; at++) {
      const prompt = { ids: make.ids(1500), kind: kinds[make.below(kinds.length)]! };
      prompts.push(prompt);
      await complete(setup.url, prompt.ids, prompt.kind);
    }
    await assertEqual(setup.router, truths, prompts);
    assert.ok(first.removedBlocks + second.removedBlocks > before, "blocks were evicted");

    const { clears } = first;
    await resetCache(engines[0]!);
    // The engine tells of it with the next thing it has to tell.
    await complete(engines[0]!.url, make.ids(100));
    await until("the first engine has cleared its cache", () => first.clears > clears);
    await assertEqual(setup.router, truths, prompts);
  });
});
