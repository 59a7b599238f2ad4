import assert from "node:assert/strict";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import type { RunningRouter } from "#src/gateway/router.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { until } from "./routerSetup.ts";
import type { Kind, Truth } from "./truth.ts";

export interface Prompt {
  readonly ids: readonly number[];
  readonly kind: Kind;
}

/** Leading tokens of a prompt that the index has for each engine, in whole blocks of its own, in the order of `truths`. */
function indexed(router: RunningRouter, truths: readonly Truth[], { ids, kind }: Prompt): number[] {
  const { fleet } = router;
  const blockTokens = fleet.blockTokens(truths[0]!.engine.model) ?? 0;
  const root = chainRoot(kind.adapter ?? null, kind.salt ?? null, blockTokens);
  const held = heldBlocks(fleet.indexBound);
  fleet.index.match(tokenChain(root, Uint32Array.from(ids), blockTokens), fleet.replicas(), held);
  return truths.map(({ engine }) => {
    const replica = fleet.replicas().find(({ endpoint }) => endpoint.url === engine.url);
    const tokens = held.gpu[replica!.index]! * blockTokens;
    return tokens - (tokens % engine.blockTokens);
  });
}

/** Waits until the index says of every prompt and engine what the truth says, and names what differs otherwise. */
export async function assertEqual(
  router: RunningRouter,
  truths: readonly Truth[],
  prompts: readonly Prompt[],
): Promise<void> {
  const differences = (): string[] => {
    const found: string[] = [];
    for (const [at, prompt] of prompts.entries()) {
      const known = indexed(router, truths, prompt).join();
      const right = truths.map((truth) => truth.heldOf(prompt.ids, prompt.kind) * truth.engine.blockTokens).join();
      if (known !== right) found.push(`prompt ${at} ${JSON.stringify(prompt.kind)}: ${known} instead of ${right}`);
    }
    for (const truth of truths) {
      const replica = router.fleet.replicas().find(({ endpoint }) => endpoint.url === truth.engine.url)!;
      const { gpuTokens, state } = router.fleet.index.view(replica.index);
      const rightTokens = truth.blocks * truth.engine.blockTokens;
      // Of two large blocks with equal halves, these are one in a pool of smaller blocks.
      const isSplit = router.fleet.blockTokens(truth.engine.model) !== truth.engine.blockTokens;
      if (isSplit ? gpuTokens > rightTokens : gpuTokens !== rightTokens)
        found.push(`${replica.id}: ${gpuTokens} tokens instead of ${rightTokens}`);
      if (state.state !== "live") found.push(`${replica.id} is ${JSON.stringify(state)}`);
    }
    return found;
  };
  await until("index and truth are equal", () => differences().length === 0).catch(() => undefined);
  assert.deepEqual(differences(), []);
}
