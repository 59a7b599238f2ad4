import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KvEvent } from "#src/engines/events/kvEvent.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { PrefixIndex } from "#src/fleet/prefixIndex.ts";
import { chainRoot, keyedParent, hashTokenBlocks, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { batch, CLEARED, named, removed, stored, tokens } from "./kvEvents.ts";

/** An index whose replica 0 is followed from its engine's start. */
function followed(options: ConstructorParameters<typeof PrefixIndex>[0] = {}, own: number | null = 4) {
  const index = new PrefixIndex(options, () => own);
  const view = index.view(0);
  view.upToDate(true, 0);
  let seq = 0;
  const tell = (...events: readonly KvEvent[]): void => view.apply(batch(seq++, ...events), 0);
  /** Leading blocks on GPU, on GPU or host, anywhere. */
  const held = (hashes: BigUint64Array): readonly number[] => {
    const out = heldBlocks(1);
    index.match(hashes, [{ index: 0 }], out);
    return [out.gpu[0]!, out.host[0]!, out.disk[0]!];
  };
  return { index, view, tell, held };
}

/** The prompt of tokens 1, 2, 3, … as the router hashes it. */
function prompt(count: number, adapter: string | null = null, salt: string | null = null): BigUint64Array {
  return tokenChain(chainRoot(adapter, salt, 4), tokens(0, count), 4);
}

describe("a view of what an engine's events tell", () => {
  it("finds a stored chain under the hashes of the prompt, in one event or in many", () => {
    const { tell, held, view } = followed();
    tell(stored([7, 8]));
    tell(stored([9], { parent: 8n, tokenIds: tokens(8, 4) }));
    assert.deepEqual(held(prompt(19)), [3, 3, 3]);
    assert.deepEqual(held(prompt(8)), [2, 2, 2]);
    assert.equal(view.gpuTokens, 12);
    assert.equal(view.state.state, "live");
  });

  it("places a block that is named only after it has left GPU memory, unless that is long ago", () => {
    const { tell, held, view } = followed();
    tell(stored([7, 8]), named([8], "host"));
    tell(removed([7, 8]), named([7], "host"));
    assert.deepEqual(held(prompt(8)), [0, 2, 2]);
    tell(removed([7, 8], "host"));
    const many = Array.from({ length: 5000 }, (_, at) => 100 + at);
    tell(stored(many), removed(many));
    tell(named([7, 100], "host"));
    assert.deepEqual([held(prompt(8)), view.holders, view.counts.unplacedBlocks], [[0, 0, 0], 0, 2]);
    tell(named(many.slice(-2000), "host"));
    assert.deepEqual([view.holders, view.counts.unplacedBlocks, view.state.state], [2000, 2, "live"]);
  });

  it("changes to the group that turns out to be of full attention, and says that it may not know all of it", () => {
    const { tell, view, held } = followed();
    tell(stored([3, 4], { group: 512 }), stored([5], { group: 4096 }));
    tell(stored([6], { group: 512, fullAttention: false }));
    assert.deepEqual([view.state.state, held(prompt(8))], ["unsure", [0, 0, 0]]);
    tell(stored([7, 8], { group: 4096 }), removed([3, 4], "gpu", 512));
    assert.deepEqual(held(prompt(8)), [2, 2, 2]);
    tell(CLEARED);
    assert.equal(view.state.state, "live");
  });

  it("passes over a store of no blocks, whatever size it gives them", () => {
    const { tell, view, held } = followed();
    tell(stored([], { blockTokens: 2 ** 30 }));
    tell(stored([1, 2]), stored([], { blockTokens: 2 ** 30, parent: 2n }));
    assert.deepEqual([view.state.state, held(prompt(8))], ["live", [2, 2, 2]]);
  });

  it("does not mistake other groups' removals for its own before it has any block", () => {
    const { tell, view, held } = followed();
    tell(stored([3], { group: 1, fullAttention: false }), removed([3], "gpu", 1));
    assert.equal(view.state.state, "live");
    tell(stored([3, 4], { group: 2 }), removed([3], "gpu", 1));
    assert.deepEqual([view.state.state, held(prompt(8))], ["live", [2, 2, 2]]);
    tell(removed([9], "gpu", 2));
    assert.equal(view.state.state, "unsure");
  });

  it("lets nothing match under another adapter, salt or image", () => {
    const { tell, held } = followed();
    tell(stored([1, 2]));
    tell(stored([3, 4], { loraName: "a" }));
    tell(stored([5, 6], { salt: "a" }));
    tell(stored([7, 8, 9], { blockKeys: [null, "image@5", null] }));
    assert.deepEqual(held(prompt(12)), [2, 2, 2]);
    assert.deepEqual(held(prompt(12, "a")), [2, 2, 2]);
    assert.deepEqual(held(prompt(12, null, "a")), [2, 2, 2]);
    assert.deepEqual(held(prompt(12, "a", "a")), [0, 0, 0]);
    assert.deepEqual(held(prompt(12, "b")), [0, 0, 0]);

    const withImage = new BigUint64Array(3);
    hashTokenBlocks(chainRoot(null, null, 4), tokens(0, 4), 4, withImage);
    hashTokenBlocks(keyedParent(withImage[0]!, "image@5"), tokens(4, 8), 4, withImage, 1);
    assert.deepEqual(held(withImage), [3, 3, 3]);
    hashTokenBlocks(keyedParent(withImage[0]!, "image@6"), tokens(4, 8), 4, withImage, 1);
    assert.deepEqual(held(withImage), [1, 1, 1]);
  });

  it("lets a block go only with its last copy", () => {
    const { tell, held } = followed();
    tell(stored([1, 2]), stored([1, 2]), removed([2]));
    assert.deepEqual(held(prompt(8)), [2, 2, 2]);
    tell(removed([2]));
    assert.deepEqual(held(prompt(8)), [1, 1, 1]);
  });

  it("knows a block on a slower tier after it has left GPU memory", () => {
    const { tell, held, view } = followed();
    tell(stored([1, 2, 3]), named([2, 3], "host"), removed([2, 3]));
    assert.deepEqual(held(prompt(12)), [1, 3, 3]);
    tell(named([3], "disk"), removed([3], "host"));
    assert.deepEqual(held(prompt(12)), [1, 2, 3]);
    tell(stored([2], { parent: 1n, tokenIds: tokens(4, 4) }));
    assert.deepEqual(held(prompt(12)), [2, 2, 3]);
    tell({ kind: "moved", engineHashes: BigUint64Array.of(3n), from: "disk", to: "gpu", group: 0 });
    assert.deepEqual(held(prompt(12)), [3, 3, 3]);
    assert.equal(view.gpuTokens, 12);
    tell(removed([1, 2, 3], null), removed([2], null));
    assert.deepEqual(held(prompt(12)), [0, 0, 0]);
    assert.equal(view.holders, 0);
    assert.equal(view.state.state, "live");
  });

  it("keeps a block that two of the engine's hashes stand for until both are gone", () => {
    const { tell, held, view } = followed();
    tell(stored([1, 2]), stored([11, 12]), removed([1, 2]));
    assert.deepEqual(held(prompt(8)), [2, 2, 2]);
    assert.equal(view.gpuTokens, 8);
    tell(removed([12, 11]));
    assert.deepEqual(held(prompt(8)), [0, 0, 0]);
    assert.equal(view.gpuTokens, 0);
  });

  it("passes over groups whose blocks say nothing about whole prefixes", () => {
    const { tell, held, view } = followed();
    tell(
      stored([1, 2], { group: 1, fullAttention: false }),
      stored([1, 2], { group: 2 }),
      stored([5, 6], { group: 3 }),
    );
    tell(removed([1, 2], "gpu", 1), removed([5, 6], "gpu", 3));
    assert.deepEqual(held(prompt(8)), [2, 2, 2]);
    assert.equal(view.counts.skippedBlocks, 4);
    assert.equal(view.state.state, "live");
  });

  it("holds nothing at once after a clear, and what comes after it counts", () => {
    const { tell, held, index } = followed();
    tell(stored([1, 2, 3]));
    index.place(0, { hashes: prompt(16), blockTokens: 4 }, 0);
    tell(CLEARED);
    assert.deepEqual(held(prompt(16)), [0, 0, 0]);
    assert.equal(index.size, 0);
    tell(stored([1]));
    assert.deepEqual(held(prompt(16)), [1, 1, 1]);
  });

  it("says that it is not sure where events contradict it", () => {
    const orphan = followed();
    orphan.tell(stored([1]), removed([1]), stored([2], { parent: 1n, tokenIds: tokens(4, 4) }));
    assert.deepEqual(orphan.view.state, { state: "unsure", sinceMs: 0, why: "parent_unknown" });
    assert.equal(orphan.view.counts.orphanedBlocks, 1);

    const removal = followed();
    removal.tell(removed([1]));
    assert.deepEqual(removal.view.state, { state: "unsure", sinceMs: 0, why: "removal_unknown" });

    const reused = followed();
    reused.tell(stored([1]), stored([1], { tokenIds: tokens(100, 4) }));
    assert.deepEqual(reused.view.state, { state: "unsure", sinceMs: 0, why: "hash_reused" });
    assert.deepEqual(reused.held(prompt(4)), [0, 0, 0]);

    const unreadable = followed();
    unreadable.view.apply({ ...batch(0, stored([1])), unreadableEvents: 1 }, 5);
    assert.deepEqual(unreadable.view.state, { state: "unsure", sinceMs: 5, why: "unreadable" });
    unreadable.view.apply(batch(1, CLEARED), 9);
    assert.deepEqual(unreadable.view.state, { state: "live", sinceMs: 9 });
  });

  it("does not mind that offloaded blocks of which it never knew are removed", () => {
    const { tell, view } = followed();
    tell(named([77], "host"), removed([77], "host"));
    assert.equal(view.state.state, "live");
    assert.deepEqual([view.counts.unplacedBlocks, view.counts.unknownRemovals], [1, 1]);
  });

  it("can place blocks after one that is gone where they are on another tier already", () => {
    const { tell, held, view } = followed();
    tell(stored([1, 2]), removed([1]));
    tell(stored([2, 3], { parent: 1n, tokenIds: tokens(4, 8), tier: "host" }), removed([2]));
    assert.equal(view.state.state, "live");
    tell(stored([1]));
    assert.deepEqual(held(prompt(12)), [1, 3, 3]);
  });

  it("cuts an engine's blocks into those that its pool's prompts are hashed by", () => {
    const { tell, held, view, index } = followed();
    tell(stored([1, 2], { blockTokens: 12 }), stored([3], { blockTokens: 12, parent: 2n, tokenIds: tokens(24, 12) }));
    assert.deepEqual(held(prompt(40)), [9, 9, 9]);
    assert.deepEqual([view.engineBlockTokens, view.ownBlockTokens, view.gpuTokens, index.size], [12, 4, 36, 9]);
    tell(removed([2]));
    assert.deepEqual(held(prompt(40)), [3, 3, 3]);
  });

  it("gives up an engine whose blocks do not fit its pool's, and takes it up again when that is over", () => {
    const { tell, view, held } = followed({}, null);
    tell(stored([1, 2], { blockTokens: 6 }));
    assert.deepEqual(view.state, { state: "dropped", sinceMs: 0, why: "block_size", upToDate: true });
    assert.deepEqual(held(prompt(8)), [0, 0, 0]);

    const mixed = followed();
    mixed.tell(stored([1, 2]), stored([3], { blockTokens: 8 }));
    assert.equal(mixed.view.state.state, "dropped");
    mixed.tell(removed([1]), CLEARED, stored([3], { blockTokens: 8 }));
    assert.equal(mixed.view.state.state, "live");
    assert.deepEqual(mixed.held(prompt(8)), [2, 2, 2]);
  });

  it("takes batches once, in order, and notices one that is missing", () => {
    const { view, held } = followed();
    view.apply(batch(0, stored([1, 2])), 0);
    view.apply(batch(0, stored([1, 2])), 0);
    view.apply(batch(1, removed([2])), 0);
    assert.deepEqual(held(prompt(8)), [1, 1, 1]);
    assert.equal(view.counts.voidBatches, 1);
    view.apply(batch(3, stored([5])), 7);
    assert.deepEqual(view.state, { state: "unsure", sinceMs: 7, why: "batch_missing" });
    view.upToDate(true, 8);
    assert.equal(view.state.state, "unsure");

    const late = followed();
    late.view.apply(batch(4, stored([1])), 0);
    assert.equal(late.view.state.state, "unsure");
  });
});

describe("a view of an engine whose events are not all there", () => {
  it("is exact only when they go back to the start, to the first batch, or to a clear", () => {
    const partial = new PrefixIndex().view(0);
    partial.apply(batch(40, stored([1])), 0);
    assert.equal(partial.state.state, "rebuilding");
    partial.upToDate(false, 1);
    assert.deepEqual(partial.state, { state: "unsure", sinceMs: 1, why: "history_incomplete" });
    partial.apply(batch(41, CLEARED), 2);
    assert.deepEqual(partial.state, { state: "live", sinceMs: 2 });

    const repeated = new PrefixIndex().view(0);
    repeated.upToDate(false, 0);
    repeated.upToDate(true, 5);
    assert.deepEqual(repeated.state, { state: "live", sinceMs: 5 });

    const unrepeated = new PrefixIndex().view(0);
    unrepeated.upToDate(false, 0);
    unrepeated.apply(batch(0, stored([1])), 3);
    assert.deepEqual(unrepeated.state, { state: "live", sinceMs: 3 });
  });

  it("takes what it knew for likely after a gap, until it knows again", () => {
    const { view, tell, held, index } = followed();
    index.setCapacity(0, 1_000);
    tell(stored([1, 2, 3]), named([3], "host"), removed([3]));
    view.lost(true, 10);
    assert.deepEqual(view.state, { state: "rebuilding", sinceMs: 10, whole: false, gap: true, doubt: null });
    assert.deepEqual(held(prompt(12)), [2, 2, 2]);
    assert.equal(view.holders, 0);
    view.apply(batch(50, stored([1])), 11);
    view.upToDate(false, 12);
    assert.deepEqual(view.state, { state: "unsure", sinceMs: 12, why: "gap" });
    assert.deepEqual(held(prompt(12)), [2, 2, 2]);
    view.lost(false, 13);
    view.apply(batch(0, stored([1])), 14);
    view.upToDate(true, 15);
    assert.deepEqual(held(prompt(12)), [1, 1, 1]);
    assert.equal(index.size, 1);
  });

  it("keeps its blocks over an interruption in which nothing was missed", () => {
    const { view, tell, held } = followed();
    tell(stored([1, 2]));
    view.interrupted("closed", 3);
    assert.equal(view.state.state, "rebuilding");
    assert.equal(view.trouble, "closed");
    tell(removed([2]));
    view.upToDate(false, 5);
    assert.deepEqual(view.state, { state: "live", sinceMs: 5 });
    assert.equal(view.trouble, null);
    assert.deepEqual(held(prompt(8)), [1, 1, 1]);
  });

  it("is empty at once when its engine restarts, and what the old process still says is void", () => {
    const { view, tell, held, index } = followed();
    tell(stored([1, 2]));
    index.restarted(0, 100);
    assert.deepEqual(held(prompt(8)), [0, 0, 0]);
    tell(stored([3], { parent: 2n, tokenIds: tokens(8, 4) }), CLEARED);
    assert.deepEqual(view.state, { state: "awaiting", sinceMs: 100 });
    assert.equal(index.size, 0);
    view.restarted(110);
    view.apply(batch(0, stored([1])), 111);
    view.upToDate(true, 112);
    assert.deepEqual(held(prompt(8)), [1, 1, 1]);
    assert.equal(view.state.state, "live");
  });

  it("keeps what the new process told when the metrics tell of the restart too, but not of a later one", () => {
    const { view, held, index } = followed();
    view.restarted(1_000);
    view.apply(batch(0, stored([1])), 1_001);
    view.upToDate(true, 1_002);
    index.restarted(0, 5_000);
    assert.deepEqual(held(prompt(8)), [1, 1, 1]);
    assert.equal(view.state.state, "live");
    index.restarted(0, 6_000);
    assert.deepEqual(held(prompt(8)), [0, 0, 0]);
    assert.equal(view.state.state, "awaiting");
  });

  it("tells two restarts in a row apart, of which events and metrics each told one", () => {
    const { view, held, index } = followed();
    index.setCapacity(0, 1_000);
    view.restarted(1_000);
    view.apply(batch(0, stored([1])), 1_001);
    view.upToDate(true, 1_002);
    view.interrupted("closed", 2_000);
    index.restarted(0, 4_000);
    view.lost(false, 4_001);
    assert.deepEqual(held(prompt(8)), [0, 0, 0]);
    view.restarted(5_000);
    assert.deepEqual(held(prompt(8)), [0, 0, 0]);
  });
});

describe("requests placed on a replica whose events are followed", () => {
  it("count at once, and until an event confirms them or their time is up", () => {
    const { index, tell, held } = followed({ pendingMs: 1_000 });
    tell(stored([1]));
    const placed = index.place(0, { hashes: prompt(16), blockTokens: 4 }, 0);
    assert.deepEqual([placed.heldBlocks, placed.blocks], [1, 4]);
    assert.deepEqual(held(prompt(16)), [4, 4, 4]);
    tell(stored([2], { parent: 1n, tokenIds: tokens(4, 4) }));
    index.confirm(placed, 500);
    assert.deepEqual(held(prompt(16)), [4, 4, 4]);
    index.expire(1_200);
    assert.deepEqual(held(prompt(16)), [2, 2, 2]);
    assert.equal(index.size, 2);
  });

  it("leave nothing behind when they end before their first token", () => {
    const { index, tell, held } = followed();
    tell(stored([1]));
    index.abandon(index.place(0, { hashes: prompt(16), blockTokens: 4 }, 0));
    assert.deepEqual(held(prompt(16)), [1, 1, 1]);
  });

  it("neither correct what events tell, nor make it less trusted", () => {
    const { index, tell, held } = followed();
    tell(stored([1, 2, 3, 4]));
    for (let at = 0; at < 50; at++) index.correct(index.place(0, { hashes: prompt(16), blockTokens: 4 }, at), 0);
    assert.deepEqual(held(prompt(16)), [4, 4, 4]);
  });

  it("do not push told blocks out by a modelled capacity", () => {
    const { index, tell, held } = followed();
    index.setCapacity(0, 8);
    tell(stored([1, 2, 3, 4]));
    index.place(0, { hashes: tokenChain(chainRoot("b", null, 4), tokens(0, 8), 4), blockTokens: 4 }, 0);
    assert.deepEqual(held(prompt(16)), [4, 4, 4]);
  });

  it("are modelled where they are text, of which no event tells", () => {
    const { index, view, held } = followed();
    const text = prompt(8, "text");
    index.confirm(index.place(0, { hashes: text, blockTokens: 128, approximate: true }, 0), 0);
    index.expire(1e9);
    view.interrupted("closed", 1);
    view.upToDate(true, 2);
    assert.deepEqual(held(text), [2, 2, 2]);
    assert.equal(index.heldTokens(0, 128), 0);
  });
});
