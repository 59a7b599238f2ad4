import { GENERIC_PRIOR } from "#src/hardware/stepTimes.ts";
import { EngineCore, type EngineCoreOptions } from "#src/emulator/scheduler/engineCore.ts";
import type { Sequence, SequenceSpec } from "#src/emulator/scheduler/sequence.ts";

export const BLOCK_TOKENS = 4;

/** A small engine: blocks of 4 tokens, so that everything happens within a few steps. */
export function smallEngine(options: Partial<EngineCoreOptions> = {}): EngineCore<string> {
  return new EngineCore<string>({
    times: GENERIC_PRIOR,
    kvBlocks: 64,
    blockTokens: BLOCK_TOKENS,
    maxRunning: 8,
    maxBatchedTokens: 32,
    policy: "fcfs",
    prefixCaching: true,
    maxResidentAdapters: 2,
    adapterLoadMs: 100,
    ...options,
  });
}

/** Hashes of a prompt's blocks: equal for equal family up to the block where `differsAt` says they part. */
export function hashes(blocks: number, family: number, differsAt = Infinity, variant = 0): BigUint64Array {
  return BigUint64Array.from({ length: blocks }, (_, block) =>
    BigInt.asUintN(
      64,
      BigInt((family + (block >= differsAt ? (variant + 1) * 1000 : 0)) * 1000 + block + 1) * 0x9e3779b97f4a7c15n,
    ),
  );
}

export function spec(
  owner: string,
  promptTokens: number,
  outputTokens: number,
  more: Partial<SequenceSpec<string>> = {},
): SequenceSpec<string> {
  return {
    promptTokens,
    outputTokens,
    hashes: new BigUint64Array(0),
    adapter: null,
    priority: 0,
    readsCache: true,
    owner,
    ...more,
  };
}

/** Steps until nothing is left; returns when that is. Throws if the engine makes no progress. */
export function runToEnd(core: EngineCore<string>, fromMs = 0, onStep: (endMs: number) => void = () => {}): number {
  let nowMs = fromMs;
  for (let steps = 0; core.hasWork; steps++) {
    if (steps > 100_000) throw new Error("the engine does not come to an end");
    const { durationMs, tokens } = core.step(nowMs);
    if (tokens === 0) throw new Error("a step did nothing although there is work");
    nowMs += durationMs;
    onStep(nowMs);
  }
  return nowMs;
}

/** Counts the references that the given sequences hold on each block. */
export function heldBlocks(sequences: Iterable<Sequence<string>>): Map<number, number> {
  const held = new Map<number, number>();
  for (const sequence of sequences) {
    for (const block of sequence.blocks.subarray(0, sequence.blockCount)) held.set(block, (held.get(block) ?? 0) + 1);
  }
  return held;
}
