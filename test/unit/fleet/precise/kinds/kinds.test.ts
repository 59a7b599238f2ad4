import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { decodeKvMessage } from "#src/engines/events/wire/kvMessage.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { endpoint, profile } from "../../samples.ts";
import { RankOfKind, type Asked, type Kind } from "./kindsOfEngines.ts";

const OWN_BLOCK_TOKENS = 4;
const RANKS = 2;
const WRITES = ["vllm array", "vllm map", "sglang array", "sglang array and map", "sglang map"] as const;
const GROUPS = [
  null,
  ["full_attention"],
  ["full_attention", "sliding_window"],
  ["sliding_window", "full_attention"],
  ["mamba", "chunked_local_attention", "full_attention"],
];

function someKind(random: SeededRandom): Kind {
  const writes = WRITES[random.below(WRITES.length)]!;
  const isVllm = writes.startsWith("vllm");
  return {
    writes,
    hashes: isVllm ? (random.below(2) === 0 ? "unsigned" : "bytes") : "signed",
    blockTokens: OWN_BLOCK_TOKENS * (1 + random.below(3)),
    groups: isVllm ? GROUPS[random.below(GROUPS.length)]! : null,
    bigrams: !isVllm && random.below(3) === 0,
    offloadsLate: isVllm && random.below(2) === 0,
  };
}

/** An engine of two ranks that is started again and again as another kind, and a neighbour of which nobody speaks. */
class Fleets {
  readonly #random: SeededRandom;
  readonly #fleet = new Fleet();
  readonly #endpoint = endpoint("a:1");
  readonly #listener;
  #ranks: RankOfKind[] = [];
  checks = 0;
  hits = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#listener = kvEventsToFleet(this.#fleet);
    this.#fleet.applyEndpoints("list", [this.#endpoint, endpoint("b:1")], 0);
    for (const name of ["a:1", "b:1"])
      this.#fleet.applyProfile(
        name,
        profile({ dataParallelRanks: name === "a:1" ? RANKS : 1, kvBlockTokens: OWN_BLOCK_TOKENS }),
        0,
      );
    this.#start();
  }

  step(nowMs: number): void {
    const dice = this.#random.below(200);
    if (dice === 0) {
      for (let rank = 0; rank < RANKS; rank++) this.#listener.restarted(this.#endpoint, rank, nowMs);
      this.#start();
    }
    const rank = this.#random.below(RANKS);
    const engine = this.#ranks[rank]!;
    if (dice === 1) engine.clear();
    for (let work = this.#random.below(4); work > 0; work--)
      if (this.#random.below(3) > 0) engine.run(this.#asked(engine.kind));
      else engine.evict();
    const batch = engine.publish();
    if (batch !== null) {
      const decoded = decodeKvMessage(batch.payload, rank, batch.seq);
      assert.equal(decoded.unreadableEvents, 0);
      this.#listener.batch(this.#endpoint, rank, decoded, nowMs);
    }
    this.#check();
  }

  #start(): void {
    const kind = someKind(this.#random);
    this.#ranks = Array.from({ length: RANKS }, () => new RankOfKind(kind, this.#random));
    for (let rank = 0; rank < RANKS; rank++)
      this.#listener.live(this.#endpoint, rank, { sinceSeq: null, complete: true }, 0);
  }

  #asked({ writes }: Kind): Asked {
    const length = this.#random.below(60);
    const variant = this.#random.below(6);
    const canSalt = writes !== "sglang array";
    return {
      tokens: Array.from({ length }, (_, at) => (at % 12 === 0 ? this.#random.below(2) : 70_000 * (at % 3) + at)),
      adapter: variant === 0 ? "tuned" : null,
      salt: variant === 1 && canSalt ? "tenant" : null,
    };
  }

  #check(): void {
    for (const { index, rank, endpoint: of } of this.#fleet.replicas()) {
      const engine = of.name === "a:1" ? this.#ranks[rank!]! : null;
      if (engine !== null)
        assert.deepEqual(
          this.#fleet.index.view(index).state.state,
          "live",
          JSON.stringify([engine.kind, this.#fleet.index.view(index).state]),
        );
      for (let probe = 0; probe < 3; probe++) {
        const asked = this.#asked((engine ?? this.#ranks[0]!).kind);
        const isVllm = engine?.kind.writes.startsWith("vllm") ?? true;
        const adapter = asked.adapter === null || isVllm ? asked.adapter : "id:7";
        const root = chainRoot(adapter, asked.salt, OWN_BLOCK_TOKENS);
        const out = heldBlocks(this.#fleet.indexBound);
        const hashes = tokenChain(root, Uint32Array.from(asked.tokens), OWN_BLOCK_TOKENS);
        this.#fleet.index.match(hashes, this.#fleet.replicas(), out);
        const blockTokens = engine?.kind.blockTokens ?? OWN_BLOCK_TOKENS;
        const found = [out.gpu, out.host, out.disk].map(
          (blocks) => Math.floor((blocks[index]! * OWN_BLOCK_TOKENS) / blockTokens) * blockTokens,
        );
        assert.deepEqual(found, engine?.leading(asked) ?? [0, 0, 0], JSON.stringify(engine?.kind));
        this.checks++;
        this.hits += Number(found[2]! > 0);
      }
    }
  }
}

describe("engines of every kind, whose batches all come", () => {
  it("are known exactly after each of them, and never doubted", () => {
    let [checks, hits] = [0, 0];
    for (let seed = 701; seed < 725; seed++) {
      const fleets = new Fleets(seed);
      for (let step = 0; step < 250; step++) fleets.step(1000 * step);
      [checks, hits] = [checks + fleets.checks, hits + fleets.hits];
    }
    assert.ok(hits > checks / 20, `${hits} hits in ${checks} checks`);
  });
});
