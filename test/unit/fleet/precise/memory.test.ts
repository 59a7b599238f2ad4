import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KvEvent } from "#src/engines/events/kvEvent.ts";
import { PrefixIndex } from "#src/fleet/prefixIndex.ts";
import { batch, removed, stored, tokens } from "./kvEvents.ts";

const REPLICAS = 8;
const MAX_HOLDERS = 20_000;

/** Bytes that a holder-block may cost, everything that the index allocates counted. */
const MOST_BYTES = 60;

function followedIndex(): { index: PrefixIndex; tell: (replica: number, ...events: readonly KvEvent[]) => void } {
  const index = new PrefixIndex({ maxHolders: MAX_HOLDERS, pendingMs: 1_000 });
  const seqs = new Uint32Array(REPLICAS);
  for (let replica = 0; replica < REPLICAS; replica++) index.view(replica).upToDate(true, 0);
  return { index, tell: (replica, ...events) => index.view(replica).apply(batch(seqs[replica]!++, ...events), 0) };
}

/** A prompt's blocks make as many prefixes; no two prompts share one. */
const EACH = 20;

function handles(prompt: number): number[] {
  return Array.from({ length: EACH }, (_, block) => prompt * EACH + block);
}

function unique(prompt: number): KvEvent {
  return stored(handles(prompt), { tokenIds: tokens(prompt * EACH * 4, EACH * 4) });
}

describe("the memory of the precise index", () => {
  it("reaches a plateau over a million unique prefixes that engines drop in time", () => {
    const { index, tell } = followedIndex();
    const promptsEach = Math.floor((MAX_HOLDERS * 0.9) / REPLICAS / EACH);
    let plateau = 0;
    for (let prompt = 1; prompt * EACH <= 1_000_000; prompt++) {
      const old = prompt - promptsEach * REPLICAS;
      const events = old > 0 ? [removed(handles(old)), unique(prompt)] : [unique(prompt)];
      tell(prompt % REPLICAS, ...events);
      if (prompt * EACH === 100_000) plateau = index.bytes;
    }
    assert.equal(index.size, promptsEach * REPLICAS * EACH);
    assert.equal(index.bytes, plateau);
    assert.ok(index.bytes < MOST_BYTES * MAX_HOLDERS, `${index.bytes / MAX_HOLDERS} bytes for each`);
    for (let replica = 0; replica < REPLICAS; replica++) assert.equal(index.view(replica).state.state, "live");
  });

  it("stays within its bound where engines hold more than it may, and says whom it gave up", () => {
    const { index, tell } = followedIndex();
    for (let prompt = 1; index.view(0).state.state === "live"; prompt++) {
      // Replica 0 is by far the fullest.
      tell(prompt % 3 === 0 ? 1 + (prompt % (REPLICAS - 1)) : 0, unique(prompt));
      assert.ok(index.size <= MAX_HOLDERS);
    }
    assert.deepEqual(index.view(0).state, { state: "dropped", sinceMs: 0, why: "index_full", upToDate: true });
    assert.equal(index.view(0).holders, 0);
    for (let replica = 1; replica < REPLICAS; replica++) assert.equal(index.view(replica).state.state, "live");
    for (let prompt = 100_001; prompt <= 110_000; prompt++) tell(prompt % REPLICAS, unique(prompt));
    assert.ok(index.size <= MAX_HOLDERS);
    assert.ok(index.bytes < MOST_BYTES * MAX_HOLDERS, `${index.bytes / MAX_HOLDERS} bytes for each`);
  });

  it("lets go of what is modelled before it gives up what is told", () => {
    const { index, tell } = followedIndex();
    const hashes = new BigUint64Array(MAX_HOLDERS / 2).map((_, at) => BigInt(at + 1) << 40n);
    index.setCapacity(100, Number.POSITIVE_INFINITY);
    index.confirm(index.place(100, { hashes, blockTokens: 4 }, 0), 0);
    const modelled = index.heldBy(100);
    assert.equal(modelled, MAX_HOLDERS / 2);
    for (let prompt = 1; prompt * EACH <= MAX_HOLDERS * 0.9; prompt++) tell(prompt % REPLICAS, unique(prompt));
    for (let replica = 0; replica < REPLICAS; replica++) assert.equal(index.view(replica).state.state, "live");
    assert.ok(index.heldBy(100) < modelled);
    assert.ok(index.size <= MAX_HOLDERS);
  });

  it("costs little where all replicas hold the same", () => {
    const { index, tell } = followedIndex();
    for (let prompt = 1; prompt <= 100; prompt++)
      for (let replica = 0; replica < REPLICAS; replica++) tell(replica, unique(prompt));
    assert.equal(index.size, 100 * EACH * REPLICAS);
    assert.equal(index.blocks, 100 * EACH);
    assert.ok(index.bytes / index.size < 30, `${index.bytes / index.size} bytes for each`);
  });
});
