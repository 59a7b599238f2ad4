import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { SeededRandom } from "#src/determinism/random.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import { readyFleet } from "../samples.ts";
import { ModelEngine, ownHashes, type ModelPrompt } from "./modelEngine.ts";

const OWN_BLOCK_TOKENS = 4;
/** The engine's buffer of batches to repeat. */
const REPLAY_BATCHES = 25;

/** Chains over few tokens, so that they share beginnings; some under adapters, salts, with images. */
function somePrompt(random: SeededRandom): ModelPrompt {
  const blocks = 1 + random.below(9);
  const variant = random.below(12);
  return {
    tokens: Array.from({ length: blocks * 8 + random.below(8) }, (_, at) => (at % 8 === 0 ? random.below(2) : at)),
    adapter: variant === 0 ? "a" : null,
    salt: variant === 1 ? "a" : null,
    keys: variant === 2 ? [null, "image"] : [],
  };
}

/** Engines with every fault of caches, streams and processes, views of them, and the comparison of both. */
class Torture {
  readonly #random: SeededRandom;
  readonly #engines: readonly ModelEngine[];
  readonly #fleet;
  readonly #listener;
  readonly #endpoints;
  readonly #cursors: number[];
  #nowMs = 1_000_000;
  exactChecks = 0;
  unsureSteps = 0;
  timesLive = 0;

  constructor(seed: number, engines = 3) {
    this.#random = new SeededRandom(seed);
    const names = Array.from({ length: engines }, (_, at) => `e${at}:1`);
    const { fleet } = readyFleet(names, {}, { kvBlockTokens: OWN_BLOCK_TOKENS });
    this.#fleet = fleet;
    fleet.onChange(({ kind, replica }) => {
      if (kind === "view" && fleet.index.isExact(replica.index)) this.timesLive++;
    });
    this.#listener = kvEventsToFleet(fleet);
    this.#endpoints = fleet.replicas().map(({ endpoint }) => endpoint);
    this.#engines = names.map(
      (_, at) =>
        new ModelEngine(
          {
            blockTokens: at % 2 === 0 ? OWN_BLOCK_TOKENS : 2 * OWN_BLOCK_TOKENS,
            ownBlockTokens: OWN_BLOCK_TOKENS,
            gpuBlocks: 12 + this.#random.below(30),
            hostBlocks: at === 0 ? 0 : 6,
            diskBlocks: at === 2 ? 4 : 0,
            hashSeed: this.#random.below(2 ** 31),
          },
          this.#random,
        ),
    );
    this.#cursors = names.map(() => 0);
    for (const at of this.#engines.keys()) this.#catchUp(at);
  }

  step(): void {
    // More than lies between the two pieces of news of one restart.
    this.#nowMs += 40_000;
    const at = this.#random.below(this.#engines.length);
    const engine = this.#engines[at]!;
    for (let runs = this.#random.below(4); runs >= 0; runs--) {
      const dice = this.#random.below(20);
      if (dice === 0) engine.evictAnywhere();
      else if (dice === 1) engine.run(somePrompt(this.#random), false);
      else engine.run(somePrompt(this.#random));
      if (this.#random.below(2) === 0) engine.publish();
    }
    if (this.#random.below(25) === 0) engine.clear();
    engine.publish();
    this.#useIndex(at);
    this.#deliver(at);
    this.#fleet.index.expire(this.#nowMs);
    this.#check(at);
  }

  #deliver(at: number): void {
    const engine = this.#engines[at]!;
    const endpoint = this.#endpoints[at]!;
    const listener = this.#listener;
    const now = this.#nowMs;
    switch (this.#random.below(30)) {
      case 0:
        // A gap that cannot be closed.
        this.#cursors[at] = engine.log.length;
        engine.run(somePrompt(this.#random));
        engine.publish();
        listener.lost(endpoint, 0, this.#random.below(2) === 0 ? "gap" : "no_replay", now);
        return this.#catchUp(at);
      case 1:
        // All that the engine can repeat.
        listener.lost(endpoint, 0, "rebuild", now);
        this.#cursors[at] = Math.max(0, engine.log.length - REPLAY_BATCHES);
        return this.#catchUp(at);
      case 2:
        listener.failed(endpoint, 0, "closed", now);
        this.#tell(at, this.#random.below(3));
        this.#useIndex(at);
        return this.#catchUp(at);
      case 3:
        // Batches told before come again.
        this.#catchUp(at);
        for (const batch of engine.log.slice(-3)) listener.batch(endpoint, 0, batch, now);
        return;
      case 4:
        // A stream that skips a batch and does not say so.
        if (this.#cursors[at]! + 1 < engine.log.length) this.#cursors[at]!++;
        return this.#tell(at, Number.POSITIVE_INFINITY);
      case 5:
        return this.#restart(at);
      case 6:
        // Behind a batch that comes too soon, the one before it.
        if (this.#cursors[at]! + 2 <= engine.log.length) {
          listener.batch(endpoint, 0, engine.log[this.#cursors[at]! + 1]!, now);
          listener.batch(endpoint, 0, engine.log[this.#cursors[at]!]!, now);
          this.#cursors[at]! += 2;
        }
        return this.#tell(at, Number.POSITIVE_INFINITY);
      case 7: {
        const from = this.#cursors[at]!;
        const batch = engine.log[from];
        if (batch === undefined) return;
        listener.batch(endpoint, 0, { ...batch, events: batch.events.slice(1), unreadableEvents: 1 }, now);
        this.#cursors[at] = from + 1;
        return this.#tell(at, Number.POSITIVE_INFINITY);
      }
      default:
        return this.#tell(at, Number.POSITIVE_INFINITY);
    }
  }

  #restart(at: number): void {
    const engine = this.#engines[at]!;
    const endpoint = this.#endpoints[at]!;
    const late = engine.log.slice(this.#cursors[at]);
    engine.restart();
    this.#cursors[at] = 0;
    if (this.#random.below(2) === 0) {
      // The metrics know it first; events of the old process are still on their way.
      this.#fleet.endpointRestarted(endpoint.name, this.#nowMs);
      this.#checkEmpty(at);
      for (const batch of late) this.#listener.batch(endpoint, 0, batch, this.#nowMs);
      this.#checkEmpty(at);
      this.#listener.restarted(endpoint, 0, this.#nowMs);
    } else {
      this.#listener.restarted(endpoint, 0, this.#nowMs);
      this.#checkEmpty(at);
    }
    const told = this.#random.below(2) === 0;
    engine.run(somePrompt(this.#random));
    engine.publish();
    if (told) this.#catchUp(at);
    // Late news of the same restart, or none.
    if (this.#random.below(2) === 0) this.#fleet.endpointRestarted(endpoint.name, this.#nowMs + 1_000);
    if (!told) this.#catchUp(at);
  }

  #catchUp(at: number): void {
    const engine = this.#engines[at]!;
    const since = this.#cursors[at]!;
    this.#tell(at, Number.POSITIVE_INFINITY);
    const history = { sinceSeq: since < engine.log.length ? since : null, complete: since === 0 };
    this.#listener.live(this.#endpoints[at]!, 0, history, this.#nowMs);
  }

  #tell(at: number, most: number): void {
    const { log } = this.#engines[at]!;
    for (let told = 0; told < most && this.#cursors[at]! < log.length; told++)
      this.#listener.batch(this.#endpoints[at]!, 0, log[this.#cursors[at]!++]!, this.#nowMs);
  }

  /** Own traffic, part of it never confirmed; some of it in text. */
  #useIndex(at: number): void {
    const { index } = this.#fleet.replicas()[at]!;
    const approximate = this.#random.below(4) === 0;
    const hashes = ownHashes(somePrompt(this.#random), this.#engines[at]!.options);
    const chain = { hashes: approximate ? hashes.map((hash) => ~hash) : hashes, blockTokens: 4, approximate };
    // Long enough ago that what is not confirmed has expired at the next check.
    const placed = this.#fleet.index.place(index, chain, this.#nowMs - 100_000);
    const end = this.#random.below(3);
    if (end === 0) this.#fleet.index.confirm(placed, this.#nowMs);
    else if (end === 1) this.#fleet.index.abandon(placed);
  }

  #checkEmpty(at: number): void {
    const { index } = this.#fleet.replicas()[at]!;
    const out = heldBlocks(this.#fleet.indexBound);
    for (let probe = 0; probe < 5; probe++) {
      const hashes = ownHashes(somePrompt(this.#random), this.#engines[at]!.options);
      this.#fleet.index.match(hashes, [{ index }], out);
      assert.deepEqual([out.gpu[index], out.host[index], out.disk[index]], [0, 0, 0]);
    }
  }

  #check(at: number): void {
    const { index } = this.#fleet.replicas()[at]!;
    if (!this.#fleet.index.isExact(index)) this.unsureSteps++;
    const exact = this.#fleet.replicas().filter((replica) => this.#fleet.index.isExact(replica.index));
    const out = heldBlocks(this.#fleet.indexBound);
    for (let probe = 0; probe < 10; probe++) {
      const prompt = somePrompt(this.#random);
      // Engines with other block sizes see other numbers of full blocks in one prompt: each has its own longest chain.
      for (const { index: one } of exact) {
        const engine = this.#engines[one]!;
        this.#fleet.index.match(ownHashes(prompt, engine.options), exact, out);
        this.exactChecks++;
        assert.deepEqual(
          [out.gpu[one], out.host[one], out.disk[one]],
          [
            engine.leading(prompt, "gpu"),
            engine.leading(prompt, "gpu", "host"),
            engine.leading(prompt, "gpu", "host", "disk"),
          ],
        );
      }
    }
    for (const { index: one } of exact)
      assert.equal(this.#fleet.index.view(one).gpuTokens, this.#engines[one]!.gpuOwnBlocks * OWN_BLOCK_TOKENS);
  }
}

describe("the index under torture", () => {
  it("equals the truth or says that it is not sure, whatever engines, streams and processes do", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const torture = new Torture(seed);
        for (let step = 0; step < 50; step++) torture.step();
      }),
      { numRuns: 30 },
    );
  });

  it("does so over long runs, and is sure again and again", () => {
    for (const seed of [1, 2, 3]) {
      const torture = new Torture(seed);
      for (let step = 0; step < 600; step++) torture.step();
      assert.ok(torture.exactChecks > 2_000, `${torture.exactChecks} exact checks`);
      assert.ok(torture.timesLive > 20, `${torture.timesLive} times live`);
      assert.ok(torture.unsureSteps > 100, `${torture.unsureSteps} steps not sure`);
    }
  });
});
