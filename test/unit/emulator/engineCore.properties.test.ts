import assert from "node:assert/strict";
import { it } from "node:test";
import * as fc from "fast-check";
import type { EngineCore } from "#src/emulator/scheduler/engineCore.ts";
import type { Sequence } from "#src/emulator/scheduler/sequence.ts";
import { hashes, heldBlocks, smallEngine, spec } from "./engineHarness.ts";

const KV_BLOCKS = 20;

const submission = fc.record({
  kind: fc.constant("submit" as const),
  promptTokens: fc.integer({ min: 1, max: 50 }),
  outputTokens: fc.integer({ min: 0, max: 25 }),
  family: fc.integer({ min: 0, max: 3 }),
  differsAt: fc.integer({ min: 0, max: 8 }),
  knownAnswer: fc.boolean(),
  adapter: fc.constantFrom(null, null, "x", "y", "z"),
  priority: fc.integer({ min: 0, max: 2 }),
});
const action = fc.oneof(
  { weight: 3, arbitrary: submission },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("step" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("abort" as const), which: fc.nat() }) },
);

function checkMemory(core: EngineCore<string>, sequences: readonly Sequence<string>[]): void {
  const held = heldBlocks(sequences);
  assert.equal(core.freeBlocks, KV_BLOCKS - held.size);
  for (let block = 0; block < KV_BLOCKS; block++) assert.equal(core.references(block), held.get(block) ?? 0);
  for (const sequence of sequences) {
    if (sequence.state === "running")
      assert.ok(
        sequence.blockCount * 4 >= sequence.computedTokens && (sequence.blockCount - 1) * 4 < sequence.computedTokens,
      );
    else assert.equal(sequence.blockCount, 0);
  }
}

it("no order of submissions, steps and aborts leaks memory, loses a sequence or miscounts its tokens", () => {
  fc.assert(
    fc.property(
      fc.array(action, { maxLength: 80 }),
      fc.record({
        policy: fc.constantFrom("fcfs" as const, "priority" as const),
        maxRunning: fc.integer({ min: 1, max: 6 }),
        maxBatchedTokens: fc.integer({ min: 1, max: 40 }),
        maxResidentAdapters: fc.integer({ min: 1, max: 2 }),
      }),
      (actions, options) => {
        const core = smallEngine({ kvBlocks: KV_BLOCKS, ...options });
        const sequences: Sequence<string>[] = [];
        const ends = new Map<string, number>();
        const tokens = new Map<string, number>();
        let nowMs = 0;
        const step = (): void => {
          const outcome = core.step(nowMs);
          assert.ok(outcome.tokens <= options.maxBatchedTokens);
          assert.ok(core.running.length <= options.maxRunning);
          for (const { owner } of outcome.emitted) tokens.set(owner, (tokens.get(owner) ?? 0) + 1);
          for (const { owner } of outcome.finished) ends.set(owner, (ends.get(owner) ?? 0) + 1);
          nowMs += outcome.durationMs;
          checkMemory(core, sequences);
        };
        for (const next of actions) {
          if (next.kind === "step") {
            step();
          } else if (next.kind === "abort") {
            const victim = sequences[next.which % Math.max(1, sequences.length)];
            if (victim !== undefined && core.abort(victim)) ends.set(victim.owner, (ends.get(victim.owner) ?? 0) + 1);
            checkMemory(core, sequences);
          } else if (core.fits(next.promptTokens, next.outputTokens)) {
            const known = next.promptTokens + (next.knownAnswer ? next.outputTokens : 0);
            const chain = hashes(Math.floor(known / 4), next.family, next.differsAt, sequences.length);
            sequences.push(
              core.submit(
                spec(String(sequences.length), next.promptTokens, next.outputTokens, { ...next, hashes: chain }),
                nowMs,
              ),
            );
          }
        }
        for (let left = 5000; core.hasWork; left--) {
          assert.ok(left > 0, "the engine does not come to an end");
          step();
        }
        assert.equal(core.freeBlocks, KV_BLOCKS);
        for (const sequence of sequences) {
          assert.equal(ends.get(sequence.owner), 1);
          if (sequence.state === "finished") assert.equal(tokens.get(sequence.owner) ?? 0, sequence.outputTokens);
          else assert.equal(sequence.state, "aborted");
          assert.ok(sequence.cachedTokens < sequence.promptTokens);
        }
        const { finished, aborted, submitted } = core.counters;
        assert.deepEqual([finished + aborted, submitted], [sequences.length, sequences.length]);
      },
    ),
    { numRuns: 300 },
  );
});
