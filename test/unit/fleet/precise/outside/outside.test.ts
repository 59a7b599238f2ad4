import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import { KvEventMonitor } from "#src/engines/events/kvEventMonitor.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import { ViewRepair } from "#src/gateway/viewRepair.ts";
import { RequestLog } from "#src/telemetry/requestLog.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import type { Replica } from "#src/fleet/replica.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { endpoint, profile } from "../../samples.ts";
import { LossyNetwork } from "./lossyNetwork.ts";
import { leadingTokens, PlainEngine, TIERS, type PlainPrompt, type Truth, type Wire } from "./plainEngine.ts";

const WIRES: readonly Wire[] = [
  { form: "map", hashes: "unsigned" },
  { form: "array", hashes: "signed" },
  { form: "map", hashes: "bytes" },
];
const NOTHING: Truth = new Map();
const SILENT = new RequestLog({ level: "silent" });
const OWN_BLOCK_TOKENS = 4;

/** What was told last of a rank's history. */
interface Told {
  readonly process: number;
  readonly seq: number;
}

/** A fleet of engines with one or two ranks and different blocks, their event streams, and what the router makes of them. */
class World {
  readonly #random: SeededRandom;
  readonly #network: LossyNetwork;
  readonly #clock = new ManualClock(1_000_000);
  readonly #timers = new ManualTimers(this.#clock);
  readonly #fleet = new Fleet();
  readonly #monitor: KvEventMonitor;
  readonly #repair: ViewRepair;
  readonly #engines = new Map<string, PlainEngine[]>();
  readonly #told = new Map<string, Told | null>();
  #endpoints: EngineEndpoint[];
  #labels = 0;
  /** Engines write events that cannot be read. */
  readonly hasGarbage: boolean;
  checks = 0;

  constructor(seed: number, replayBatches: number) {
    this.#random = new SeededRandom(seed);
    this.#network = new LossyNetwork(this.#random);
    this.hasGarbage = seed % 5 === 0;
    this.#endpoints = ["a", "b", "c"].map((name) => this.#describe(name));
    for (const [at, { name }] of this.#endpoints.entries()) this.#build(name, at, replayBatches);
    const isNarrow = seed % 3 === 0;
    this.#monitor = new KvEventMonitor({
      listener: this.#noting(kvEventsToFleet(this.#fleet)),
      clock: this.#clock,
      timers: this.#timers,
      random: this.#random,
      sockets: this.#network,
      settings: isNarrow ? { maxQueuedMessages: 4, maxQueuedBytes: 60_000 } : {},
      open: () => ({ ask: () => Promise.reject(new Error("no HTTP here")), close: () => Promise.resolve() }),
    });
    this.#repair = new ViewRepair({
      fleet: this.#fleet,
      clock: this.#clock,
      log: SILENT,
      startOver: (one) => this.#monitor.restarted(one),
      repeatAll: (one) => this.#monitor.repeatAll(one),
    });
    this.#fleet.applyEndpoints("list", this.#endpoints, this.#clock.nowMs());
    this.#monitor.setEndpoints(this.#endpoints);
  }

  stop(): Promise<void> {
    return this.#monitor.stop();
  }

  /** Engines are identified some time after their streams have begun. */
  identify(): void {
    for (const one of this.#endpoints) {
      const [before] = this.#fleet.ofEndpoint(one.name);
      const ranks = this.#engines.get(one.name)!.length;
      const found = profile({ dataParallelRanks: ranks, kvBlockTokens: OWN_BLOCK_TOKENS });
      this.#fleet.applyProfile(one.name, found, this.#clock.nowMs());
      if (this.#fleet.ofEndpoint(one.name)[0] !== before) this.#monitor.restarted(one);
      this.#monitor.identified(one, found);
    }
  }

  async step(): Promise<void> {
    const dice = this.#random.below(60);
    const one = this.#endpoints[this.#random.below(this.#endpoints.length)]!;
    const ranks = this.#engines.get(one.name)!;
    const engine = ranks[this.#random.below(ranks.length)]!;
    if (dice === 0) this.#restart(one);
    else if (dice === 1) this.#reset(engine);
    else if (dice === 2) this.#network.cut(engine);
    else if (dice === 3) engine.clear();
    else if (dice === 4) this.#news(one);
    else if (dice === 5) this.#relabel();
    else if (dice === 6) await this.#timers.advance(this.#random.below(20_000));
    else if (dice < 16) engine.evict();
    else if (dice < 18) for (let run = 0; run < 30; run++) this.#publish(engine, true);
    else if (dice < 45) engine.run(this.#prompt());
    if (this.#random.below(2) === 0) this.#publish(engine, false);
    if (this.#random.below(4) === 0) this.#place();
    for (let moves = this.#random.below(6); moves > 0; moves--) this.#network.move();
    await this.#timers.advance(this.#random.below(50));
    this.#check();
  }

  /** Nothing goes wrong any more, until nothing more happens. */
  async settle(): Promise<void> {
    this.#network.behaves = true;
    for (const engine of [...this.#engines.values()].flat()) this.#publish(engine, false);
    // Longer than any silence after which a stream asks, and than the delays between its questions.
    for (let round = 0; round < 100; round++) {
      while (this.#network.move()) await this.#timers.advance(0);
      await this.#timers.advance(round < 60 ? 1000 : 4000);
      if (round % 10 === 0) this.#check();
    }
    while (this.#network.move()) await this.#timers.advance(0);
    this.#network.behaves = false;
  }

  /** Live views, each of which knows all that its engine has published; of so many. */
  settled(): { live: number; of: number } {
    const replicas = this.#fleet.replicas();
    const live = replicas.filter(({ index }) => this.#fleet.index.isExact(index));
    for (const replica of live) {
      const { process, log } = this.#engineOf(replica);
      const told = this.#told.get(replica.id) ?? null;
      assert.deepEqual(told, log.length === 0 ? null : { process, seq: log.length - 1 }, replica.id);
    }
    return { live: live.length, of: replicas.length };
  }

  #describe(name: string): EngineEndpoint {
    const kvEvents = { endpoint: "tcp://*:5000", replayEndpoint: "tcp://*:6000", topic: name === "b" ? "kv" : "" };
    return endpoint(name, { kvEvents, labels: { rack: `${this.#labels}` } });
  }

  #build(name: string, at: number, replayBatches: number): void {
    const engines = Array.from({ length: name === "c" ? 2 : 1 }, () => {
      const options = {
        blockTokens: name === "b" ? 2 * OWN_BLOCK_TOKENS : OWN_BLOCK_TOKENS,
        gpuBlocks: 10 + this.#random.below(20),
        offloads: this.#random.below(2) === 0,
        hasWindowGroup: this.#random.below(2) === 0,
        writesGarbage: this.hasGarbage,
        wire: WIRES[at]!,
      };
      return new PlainEngine(options, this.#random);
    });
    this.#engines.set(name, engines);
    for (const [rank, engine] of engines.entries())
      this.#network.add(`tcp://${name}:${5000 + rank}`, `tcp://${name}:${6000 + rank}`, {
        engine,
        topic: name === "b" ? "kv" : "",
        replayBatches,
        highWaterMark: 12,
      });
  }

  #noting(toFleet: KvEventListener): KvEventListener {
    const idOf = ({ name }: EngineEndpoint, rank: number) =>
      this.#fleet.ofEndpoint(name).find((one) => (one.rank ?? 0) === rank)?.id ?? "";
    return {
      ...toFleet,
      batch: (one, rank, batch, nowMs) => {
        // Batches for a replica that does not take them yet are void.
        const { index } = this.#fleet.byId(idOf(one, rank)) ?? { index: -1 };
        const isVoid = index >= 0 && this.#fleet.index.view(index).state.state === "awaiting";
        if (!isVoid) this.#told.set(idOf(one, rank), { process: Math.floor(batch.publishedMs / 1e6), seq: batch.seq });
        toFleet.batch(one, rank, batch, nowMs);
      },
      lost: (one, rank, why, nowMs) => {
        this.#told.set(idOf(one, rank), null);
        toFleet.lost(one, rank, why, nowMs);
      },
      restarted: (one, rank, nowMs) => {
        this.#told.set(idOf(one, rank), null);
        toFleet.restarted(one, rank, nowMs);
        const replica = this.#fleet.byId(idOf(one, rank));
        if (replica !== null) this.#assertEmpty(replica);
      },
    };
  }

  #prompt(): PlainPrompt {
    const variant = this.#random.below(10);
    const length = OWN_BLOCK_TOKENS * (1 + this.#random.below(12)) + this.#random.below(4);
    return {
      tokens: Array.from({ length }, (_, at) => (at % 8 === 0 ? this.#random.below(2) : at)),
      adapter: variant === 0 ? "x" : null,
      salt: variant === 1 ? "x" : null,
    };
  }

  #publish(engine: PlainEngine, withWork: boolean): void {
    if (withWork) engine.run(this.#prompt());
    const batch = engine.publish();
    if (batch !== null) this.#network.publish(engine, batch);
  }

  /** Once or twice in a row, of which the metrics may tell before the events do, after, or not at all. */
  #restart(one: EngineEndpoint): void {
    for (let times = 1 + this.#random.below(2); times > 0; times--) {
      for (const engine of this.#engines.get(one.name)!) {
        this.#network.cut(engine);
        engine.restart();
        for (let runs = this.#random.below(4); runs > 0; runs--) this.#publish(engine, true);
      }
      for (let moves = this.#random.below(8); moves > 0; moves--) this.#network.move();
      if (this.#random.below(2) === 0) this.#news(one);
    }
  }

  /** The numbers begin anew on connections that stay. */
  #reset(engine: PlainEngine): void {
    engine.restart();
    this.#publish(engine, true);
  }

  #news(one: EngineEndpoint): void {
    const exact = this.#fleet.ofEndpoint(one.name).filter(({ index }) => this.#fleet.index.isExact(index));
    this.#fleet.endpointRestarted(one.name, this.#clock.nowMs());
    for (const replica of this.#fleet.ofEndpoint(one.name)) {
      if (this.#fleet.index.view(replica.index).state.state === "awaiting") {
        this.#told.set(replica.id, null);
        this.#assertEmpty(replica);
      } else assert.ok(exact.includes(replica) || !this.#fleet.index.isExact(replica.index));
    }
    this.#monitor.restarted(one);
  }

  /** What else is said of an engine changes, and with it its streams. */
  #relabel(): void {
    this.#labels++;
    this.#endpoints = this.#endpoints.map(({ name }) => this.#describe(name));
    this.#fleet.applyEndpoints("list", this.#endpoints, this.#clock.nowMs());
    this.#monitor.setEndpoints(this.#endpoints);
    this.identify();
  }

  /** Own traffic, which is promised, and then confirmed or not. */
  #place(): void {
    const replicas = this.#fleet.replicas();
    const { index } = replicas[this.#random.below(replicas.length)]!;
    const chain = { hashes: hashesOf(this.#prompt()), blockTokens: OWN_BLOCK_TOKENS };
    const nowMs = this.#clock.nowMs();
    const placed = this.#fleet.index.place(index, chain, nowMs - 100_000);
    if (this.#random.below(2) === 0) this.#fleet.index.confirm(placed, nowMs);
  }

  #engineOf({ endpoint: { name }, rank }: Replica): PlainEngine {
    return this.#engines.get(name)![rank ?? 0]!;
  }

  #leading(prompt: PlainPrompt, replica: Replica): number[] {
    const out = heldBlocks(this.#fleet.indexBound);
    // Before the engine is identified, its events are kept in its own blocks.
    const own = this.#fleet.index.view(replica.index).ownBlockTokens ?? OWN_BLOCK_TOKENS;
    this.#fleet.index.match(hashesOf(prompt, own), [replica], out);
    // Engines share whole blocks, which may be several of those that prompts are hashed by.
    const { blockTokens } = this.#engineOf(replica).options;
    const each = blockTokens / own;
    return [out.gpu, out.host, out.disk].map((blocks) => Math.floor(blocks[replica.index]! / each) * blockTokens);
  }

  #assertEmpty(replica: Replica): void {
    this.#fleet.index.expire(this.#clock.nowMs());
    for (let probe = 0; probe < 3; probe++) assert.deepEqual(this.#leading(this.#prompt(), replica), [0, 0, 0]);
  }

  #check(): void {
    this.#fleet.index.expire(this.#clock.nowMs());
    this.#repair.look();
    for (const replica of this.#fleet.replicas()) {
      if (!this.#fleet.index.isExact(replica.index)) continue;
      const { process, log, options } = this.#engineOf(replica);
      const told = this.#told.get(replica.id) ?? null;
      // What a process told that is gone cannot be compared any more.
      if (told !== null && told.process !== process) continue;
      const truth = told === null ? NOTHING : log[told.seq]!.truth;
      for (let probe = 0; probe < 4; probe++) {
        this.checks++;
        const prompt = this.#prompt();
        const expected = [1, 2, 3].map((tiers) =>
          leadingTokens(truth, prompt, options.blockTokens, TIERS.slice(0, tiers)),
        );
        assert.deepEqual(this.#leading(prompt, replica), expected, `${replica.id} at ${told?.seq}`);
      }
    }
  }
}

function hashesOf({ tokens, adapter, salt }: PlainPrompt, blockTokens = OWN_BLOCK_TOKENS): BigUint64Array {
  return tokenChain(chainRoot(adapter, salt, blockTokens), Uint32Array.from(tokens), blockTokens);
}

describe("the router's view of engines, from outside", () => {
  for (const replayBatches of [Number.POSITIVE_INFINITY, 10]) {
    it(`is true wherever it is live, with ${replayBatches} batches to repeat`, async () => {
      const counts = { live: 0, of: 0 };
      let checks = 0;
      for (let seed = 1; seed <= 5; seed++) {
        const world = new World(seed, replayBatches);
        for (let round = 0; round < 2; round++) {
          for (let step = 0; step < 100; step++) {
            if (round === 0 && step === 10) world.identify();
            await world.step();
          }
          await world.settle();
          const { live, of } = world.settled();
          // What could not be read may have been anything.
          if (!world.hasGarbage) [counts.live, counts.of] = [counts.live + live, counts.of + of];
        }
        await world.stop();
        checks += world.checks;
      }
      assert.ok(checks > 5_000, `${checks} checks`);
      if (replayBatches === Number.POSITIVE_INFINITY) assert.equal(counts.live, counts.of);
      else assert.ok(counts.live > counts.of / 4, `${counts.live} of ${counts.of} live`);
    });
  }
});
