import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { tokenChain, chainRoot } from "#src/request/tokens/tokenChain.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import type { RunningRouter } from "#src/gateway/router.ts";
import { engines } from "./engines.ts";
import { complete, TokenPrompts } from "./prompts.ts";
import { post, setUp, until } from "./routerSetup.ts";
import { Truth, type Kind } from "./truth.ts";

interface Prompt {
  readonly ids: readonly number[];
  readonly kind: Kind;
}

/** Leading blocks of a prompt that the router's index has for each engine, in the order of `truths`. */
function indexed(router: RunningRouter, truths: readonly Truth[], { ids, kind }: Prompt): number[] {
  const { fleet } = router;
  const { blockTokens } = truths[0]!.engine;
  const root = chainRoot(kind.adapter ?? null, kind.salt ?? null, blockTokens);
  const held = heldBlocks(fleet.indexBound);
  fleet.index.match(tokenChain(root, Uint32Array.from(ids), blockTokens), fleet.replicas(), held);
  return truths.map(({ engine }) => {
    const replica = fleet.replicas().find(({ endpoint }) => endpoint.url === engine.url);
    return held.gpu[replica!.index]!;
  });
}

/** Waits until the index says of every prompt and engine what the truth says, and names what differs otherwise. */
async function assertEqual(router: RunningRouter, truths: readonly Truth[], prompts: readonly Prompt[]): Promise<void> {
  const differences = (): string[] => {
    const found: string[] = [];
    for (const [at, prompt] of prompts.entries()) {
      const known = indexed(router, truths, prompt).join();
      const right = truths.map((truth) => truth.heldOf(prompt.ids, prompt.kind)).join();
      if (known !== right) found.push(`prompt ${at} ${JSON.stringify(prompt.kind)}: ${known} instead of ${right}`);
    }
    for (const truth of truths) {
      const replica = router.fleet.replicas().find(({ endpoint }) => endpoint.url === truth.engine.url)!;
      const { holders, state } = router.fleet.index.view(replica.index);
      if (holders !== truth.blocks) found.push(`${replica.id}: ${holders} blocks instead of ${truth.blocks}`);
      if (state.state !== "live") found.push(`${replica.id} is ${JSON.stringify(state)}`);
    }
    return found;
  };
  await until("index and truth are equal", () => differences().length === 0, 10_000).catch(() => undefined);
  assert.deepEqual(differences(), []);
}

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
    await post(`${engines[0]!.url}/reset_prefix_cache`, {}).catch(() => undefined);
    // The engine tells of it with the next thing it has to tell.
    await complete(engines[0]!.url, make.ids(100));
    await until("the first engine has cleared its cache", () => first.clears > clears);
    await assertEqual(setup.router, truths, prompts);
  });
});
