import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { createPolicy } from "#src/routing/createPolicy.ts";
import type { ChoiceInput } from "#src/routing/policy.ts";
import type { PricedReplica } from "#src/routing/pricedReplica.ts";
import { Rendezvous } from "#src/routing/rendezvous.ts";
import { choiceInput, decoding, replica, request } from "./pool.ts";

function chosen(name: string, input: ChoiceInput, options: Record<string, unknown> = {}) {
  const { index, branch, scores } = createPolicy(name, options).choose(input);
  return { index, branch, scores: scores === null ? null : Array.from(scores.slice(0, input.candidates.length)) };
}

const withRequests = (counts: number[]) => counts.map((requests) => replica({ requests }));

describe("round-robin", () => {
  it("takes one after the other", () => {
    const policy = createPolicy("round-robin");
    const input = choiceInput(withRequests([9, 0, 5]));
    const order = Array.from({ length: 6 }, () => policy.choose(input).index);
    const start = order[0]!;
    assert.deepEqual(
      order,
      [0, 1, 2, 3, 4, 5].map((step) => (start + step) % 3),
    );
  });
});

describe("least-connections and power-of-two", () => {
  it("take fewer requests, whatever their size", () => {
    assert.equal(chosen("least-connections", choiceInput(withRequests([3, 1, 2]))).index, 1);
    for (let seed = 0; seed < 20; seed++)
      assert.equal(
        chosen("power-of-two", choiceInput(withRequests([7, 1]), { random: new SeededRandom(seed) })).index,
        1,
      );
  });

  it("power-of-two never takes the fullest, and not always the emptiest", () => {
    const pool = withRequests([0, 1, 2, 3]);
    const policy = createPolicy("power-of-two");
    const random = new SeededRandom(1);
    const counts = [0, 0, 0, 0];
    for (let round = 0; round < 600; round++) counts[policy.choose(choiceInput(pool, { random })).index]!++;
    assert.equal(counts[3], 0);
    assert.ok(counts[0]! > 200 && counts[1]! > 100 && counts[2]! > 50, counts.join());
  });
});

describe("session", () => {
  const sessions = Array.from({ length: 300 }, (_, at) => `user-${at}`);

  function homes(pool: readonly PricedReplica[]): Map<string, string> {
    const policy = createPolicy("session", { loadFactor: 1000 });
    return new Map(
      sessions.map((session) => {
        const { index } = policy.choose(choiceInput(pool, { request: request(100, { session }) }));
        return [session, pool[index]!.id];
      }),
    );
  }

  it("keeps a session on its replica, in whatever order the pool is listed", () => {
    const pool = Array.from({ length: 8 }, () => replica());
    assert.deepEqual(homes(pool), homes([...pool].reverse()));
  });

  it("moves only the sessions of a replica that is lost, and to all the others", () => {
    const pool = Array.from({ length: 8 }, (_, at) => replica({ id: `gpu-${at}` }));
    const before = homes(pool);
    const after = homes(pool.filter(({ id }) => id !== "gpu-3"));
    const movedTo = new Set<string>();
    for (const session of sessions) {
      if (before.get(session) === "gpu-3") movedTo.add(after.get(session)!);
      else assert.equal(after.get(session), before.get(session));
    }
    assert.ok(movedTo.size >= 5, `moved to ${movedTo.size} replicas`);
    assert.deepEqual(homes(pool), before, "and back when it returns");
  });

  it("lets a session overflow where its replica has more than its bound, and only then", () => {
    const quiet = Array.from({ length: 4 }, (_, at) => replica({ id: `gpu-${at}`, requests: 4 }));
    const asked = { request: request(100, { session: "ada" }) };
    const own = chosen("session", choiceInput(quiet, asked));
    assert.equal(own.branch, "own");
    // Average (6 + 3·4 + 1)/4 = 4.75, times 1.5 = 7.1: an eighth may join, a ninth may not.
    const load = (requests: number) =>
      quiet.map(({ id }, at) => replica({ id, requests: at === own.index ? requests : 4 }));
    assert.equal(chosen("session", choiceInput(load(7), asked)).branch, "own");
    const overflow = chosen("session", choiceInput(load(12), asked));
    assert.equal(overflow.branch, "overflow");
    assert.notEqual(overflow.index, own.index);
  });

  it("takes the least loaded for a request without a session", () => {
    const { index, branch } = chosen("session", choiceInput(withRequests([3, 1, 2])));
    assert.deepEqual({ index, branch }, { index: 1, branch: "no_session" });
  });
});

describe("prefix-hash", () => {
  it("sends equal beginnings to one replica, and different ones elsewhere", () => {
    const pool = Array.from({ length: 8 }, () => replica());
    const policy = createPolicy("prefix-hash");
    const home = (seed: number, promptTokens: number) =>
      policy.choose(choiceInput(pool, { request: request(promptTokens, { seed }) })).index;
    assert.equal(home(1, 2000), home(1, 9000));
    assert.ok(new Set(Array.from({ length: 40 }, (_, seed) => home(seed, 2000))).size >= 6);
  });

  it("does not let one prefix pin one replica", () => {
    const policy = createPolicy("prefix-hash");
    const requests = [0, 0, 0, 0];
    for (let round = 0; round < 100; round++) {
      const pool = requests.map((count, at) => replica({ id: `gpu-${at}`, requests: count }));
      requests[policy.choose(choiceInput(pool)).index]!++;
    }
    // Bounded: 1.25 times the average of 25, rounded up.
    assert.ok(Math.max(...requests) <= 32 && Math.min(...requests) > 0, requests.join());
  });

  it("takes the least loaded for what cannot be hashed", () => {
    assert.equal(
      chosen("prefix-hash", choiceInput(withRequests([1, 0]), { request: request(5) })).branch,
      "unhashable",
    );
  });
});

describe("prefix-scorer", () => {
  it("adds weighted shares: shortest queue, free KV, cached prompt", () => {
    const pool = [
      replica({ load: { ...decoding(10, 1000, 0), waitingSequences: 4 }, capacityTokens: 40_000 }),
      replica({ load: { ...decoding(20, 1000, 0), waitingSequences: 0 }, capacityTokens: 40_000 }),
      replica({ load: { ...decoding(0, 0, 0), waitingSequences: 2 }, capacityTokens: 40_000 }),
    ];
    const { scores, index, branch } = chosen("prefix-scorer", choiceInput(pool, { cachedTokens: [800, 0, 100] }));
    assert.deepEqual(scores, [2 * 0 + 2 * 0.75 + 3 * 0.8, 2 * 1 + 2 * 0.5 + 0, 2 * 0.5 + 2 * 1 + 3 * 0.1]);
    assert.deepEqual({ index, branch }, { index: 0, branch: "highest_score" });
  });

  it("has no opinion on queues that are equal", () => {
    const pool = [replica({ load: { waitingSequences: 3 } }), replica({ load: { waitingSequences: 3 } })];
    assert.deepEqual(chosen("prefix-scorer", choiceInput(pool)).scores, [4, 4]);
  });
});

describe("tree-match", () => {
  const cached = { cachedTokens: [800, 0, 0], heldTokens: [9000, 5000, 100] };

  it("takes the best match above the threshold", () => {
    const { index, branch } = chosen("tree-match", choiceInput(withRequests([60, 0, 0]), cached));
    assert.deepEqual({ index, branch }, { index: 0, branch: "best_match" });
  });

  it("takes the smallest tree below it", () => {
    const few = { ...cached, cachedTokens: [300, 0, 0] };
    const { index, branch } = chosen("tree-match", choiceInput(withRequests([0, 0, 9]), few));
    assert.deepEqual({ index, branch }, { index: 2, branch: "smallest_tree" });
  });

  it("takes the shortest queue while both balance thresholds are passed", () => {
    assert.equal(chosen("tree-match", choiceInput(withRequests([65, 5, 0]), cached)).branch, "shortest_queue");
    assert.equal(chosen("tree-match", choiceInput(withRequests([265, 200, 199]), cached)).branch, "best_match");
    const tuned = { balanceAbsThreshold: 32, balanceRelThreshold: 1.1 };
    assert.equal(chosen("tree-match", choiceInput(withRequests([40, 5, 4]), cached), tuned).index, 2);
  });
});

describe("dynamo-cost", () => {
  const pool = [
    replica({ load: { ...decoding(4, 800, 100), pendingPrefillTokens: 0 } }),
    replica({ load: { ...decoding(1, 800, 100), pendingPrefillTokens: 1600 } }),
  ];

  it("adds prefill blocks and decode blocks", () => {
    // Blocks of 16: (1,600 − 800)/16 + (3,200 + 1,600)/16, and (1,600 + 1,600)/16 + (800 + 1,600)/16.
    const input = choiceInput(pool, { request: request(1600), cachedTokens: [800, 0] });
    assert.deepEqual(chosen("dynamo-cost", input).scores, [50 + 300, 200 + 150]);
    assert.equal(chosen("dynamo-cost", input, { overlapWeight: 2 }).index, 0);
    assert.equal(chosen("dynamo-cost", input, { overlapWeight: 0.5 }).index, 1);
  });

  it("takes the smaller tree among equals", () => {
    const input = choiceInput(pool, { request: request(1600), cachedTokens: [800, 0], heldTokens: [7000, 6000] });
    for (let seed = 0; seed < 10; seed++)
      assert.equal(chosen("dynamo-cost", { ...input, random: new SeededRandom(seed) }).index, 1);
  });

  it("draws from a softmax over the pool's range above temperature 0", () => {
    const input = choiceInput(pool, { request: request(1600), random: new SeededRandom(1) });
    const policy = createPolicy("dynamo-cost", { temperature: 0.5 });
    let first = 0;
    for (let round = 0; round < 4000; round++) if (policy.choose(input).index === 0) first++;
    // Costs 100 + 300 and 200 + 150: the dearer one is exp(−1/0.5) as likely.
    const expected = Math.exp(-2) / (1 + Math.exp(-2));
    assert.ok(Math.abs(first / 4000 - expected) < 0.02, `${first} of 4000`);
  });
});

describe("lmetric", () => {
  it("multiplies tokens to compute by requests there", () => {
    const pool = [
      replica({ load: { sequences: 9, pendingPrefillTokens: 0 } }),
      replica({ load: { sequences: 3, pendingPrefillTokens: 500 } }),
    ];
    const input = choiceInput(pool, { cachedTokens: [900, 0] });
    assert.deepEqual(chosen("lmetric", input).scores, [100 * 10, 1500 * 4]);
    assert.deepEqual(chosen("lmetric", input, { queuedPrefill: 0 }).scores, [100 * 10, 1000 * 4]);
  });

  it("still prefers fewer requests where everything is cached", () => {
    const pool = [replica({ load: { sequences: 9 } }), replica({ load: { sequences: 2 } })];
    assert.equal(chosen("lmetric", choiceInput(pool, { cachedTokens: [1000, 1000] })).index, 1);
  });
});

describe("rendezvous", () => {
  it("remembers no more ids than its bound", () => {
    const rendezvous = new Rendezvous(100);
    for (let at = 0; at < 1000; at++) rendezvous.weight(at, replica({ id: `gone-${at}` }));
    assert.ok(rendezvous.remembered <= 100);
  });

  it("gives each replica its share of keys", () => {
    const rendezvous = new Rendezvous();
    const pool = Array.from({ length: 5 }, (_, at) => replica({ id: `10.0.0.${at}:8000` }));
    const counts = [0, 0, 0, 0, 0];
    for (let key = 0; key < 5000; key++) {
      const weights = pool.map((one) => rendezvous.weight(Math.imul(key, 0x9e3779b1), one));
      counts[weights.indexOf(Math.max(...weights))]!++;
    }
    for (const count of counts) assert.ok(count > 850 && count < 1150, counts.join());
  });
});
