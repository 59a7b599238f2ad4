import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ChoiceInput } from "#src/routing/policy.ts";
import { Pricer } from "#src/routing/price.ts";
import { DEFAULT_PRICE_SETTINGS } from "#src/routing/priceSettings.ts";
import { PriceTable } from "#src/routing/priceTable.ts";
import { BASES, COLUMN, TERMS } from "#src/routing/terms/term.ts";
import type { BasisName, TermName } from "#src/routing/terms/term.ts";
import { prefillMs, stepMs } from "#src/hardware/stepTimes.ts";
import { choiceInput, decoding, fixedLatency, H100, replica, request } from "./pool.ts";
import type { Facts } from "./pool.ts";

type Priced = Record<TermName, { ms: number; basis: BasisName }>;

/** Terms of one replica with these facts. */
function priced(facts: Facts, overrides: Partial<ChoiceInput> = {}): Priced {
  const table = new PriceTable();
  new Pricer(DEFAULT_PRICE_SETTINGS).price(choiceInput([replica(facts)], overrides), table);
  return Object.fromEntries(
    TERMS.map((term, column) => [term, { ms: table.terms[column]!, basis: BASES[table.bases[column]!]! }]),
  ) as Priced;
}

function close(actual: number, expected: number, message?: string): void {
  assert.ok(Math.abs(actual - expected) < 1e-6, `${message ?? ""} ${actual} is not ${expected}`);
}

it("has a column for every term, in the order of TERMS", () => {
  assert.deepEqual(COLUMN, Object.fromEntries(TERMS.map((term, column) => [term, column])));
});

describe("queue", () => {
  it("is nothing on an idle replica", () => {
    assert.equal(priced({}).queue.ms, 0);
  });

  it("is half a step where others decode", () => {
    close(priced({ load: decoding(10, 1000, 100) }).queue.ms, stepMs(H100, 10, 10_000) / 2);
  });

  it("counts waiting prompts of any length, outputs of one token or not", () => {
    const pendingPrefillMs = prefillMs(H100, 32_000, 0);
    const load = {
      sequences: 1,
      waitingSequences: 1,
      pendingPrefillTokens: 32_000,
      pendingPrefillMs,
      reservedKvTokens: 32_001,
      remainingOutputTokens: 1,
    };
    // Its chunks are steps of their own.
    close(priced({ load }).queue.ms, pendingPrefillMs + (32_000 / 8192 - 1) * H100.prefillBaseMs);
  });

  it("adds the decode steps that waiting prompts ride on", () => {
    const load = {
      ...decoding(10, 1000, 100),
      sequences: 11,
      waitingSequences: 1,
      pendingPrefillTokens: 4 * 8192,
      pendingPrefillMs: 700,
      reservedKvTokens: 10 * 1100 + 4 * 8192,
    };
    const step = stepMs(H100, 10, 10_000);
    close(priced({ load }).queue.ms, 700 - H100.prefillBaseMs + 4.5 * step);
  });

  it("waits for a slot: until the first of a full batch ends", () => {
    const facts = { load: decoding(16, 1000, 200), slots: 16, earliestRemainingTokens: 30 };
    close(priced(facts).queue.ms, 30 * stepMs(H100, 16, 16_000));
  });

  it("waits longer for four slots than for one: the k-th of n ends after 2·mean·k/(n+1) steps", () => {
    const facts = { load: decoding(32, 1000, 200), slots: 32, earliestRemainingTokens: 30 };
    const four = priced(facts, { request: request(1000, { sequences: 4 }) });
    close(four.queue.ms, ((2 * 200 * 4) / 33) * stepMs(H100, 32, 32_000));
    // What is more than an eighth of the slots waits in the engine for the rest.
    close(priced(facts, { request: request(1000, { sequences: 30 }) }).queue.ms, four.queue.ms);
  });

  it("waits for memory too, though slots are free", () => {
    const facts = { load: decoding(9, 1000, 200), capacityTokens: 9500 };
    // 1,000 tokens are needed and 500 are free: half of an average sequence has to go.
    close(priced(facts).queue.ms, ((2 * 200 * 0.5) / 10) * stepMs(H100, 9, 9000));
  });
});

describe("prefill and restore", () => {
  it("computes what is not cached", () => {
    close(priced({}, { cachedTokens: [600] }).prefill.ms, prefillMs(H100, 400, 600));
    close(priced({}).prefill.ms, prefillMs(H100, 1000, 0));
  });

  it("always computes the last token", () => {
    close(priced({}, { cachedTokens: [1000] }).prefill.ms, prefillMs(H100, 1, 999));
  });

  it("rides on a decode step where others are", () => {
    const { prefill } = priced({ load: decoding(10, 1000, 100) });
    close(prefill.ms, prefillMs(H100, 1000, 0) - H100.prefillBaseMs + stepMs(H100, 10, 10_000));
  });

  it("restores from host memory what would take longer to compute", () => {
    const long = { request: request(20_000), cachedTokens: [2000], hostTokens: [18_000], diskTokens: [18_000] };
    const { restore, prefill } = priced({}, long);
    close(restore.ms, 16 * 6);
    close(prefill.ms, prefillMs(H100, 2000, 18_000));
    assert.equal(restore.basis, "prior");
  });

  it("never restores for longer than computing takes", () => {
    // 1,000 tokens from disk take 40 ms, computing them 16 ms.
    const { restore, prefill } = priced({}, { cachedTokens: [0], hostTokens: [0], diskTokens: [900] });
    assert.equal(restore.ms, 0);
    close(prefill.ms, prefillMs(H100, 1000, 0));
  });

  it("says that there is no tier below the GPU", () => {
    assert.equal(priced({}).restore.basis, "not_applicable");
    assert.equal(priced({}).transfer.basis, "not_applicable");
  });
});

describe("adapter", () => {
  const french = { request: request(1000, { adapter: "french" }) };

  it("costs nothing where it is loaded or none is wanted", () => {
    assert.deepEqual(priced({ adapters: { isResident: (name) => name === "french" } }, french).adapter, {
      ms: 0,
      basis: "measured",
    });
    assert.deepEqual(priced({}).adapter, { ms: 0, basis: "not_applicable" });
  });

  it("costs its loading, and a part of another one's where that has to leave", () => {
    assert.deepEqual(priced({}, french).adapter, { ms: 200, basis: "prior" });
    assert.equal(priced({ adapters: { victim: "german" } }, french).adapter.ms, 300);
  });
});

describe("decode and interference", () => {
  it("takes a step of the joined batch for each token but the first", () => {
    const { decode } = priced({ load: decoding(10, 1000, 100) });
    close(decode.ms, 99 * stepMs(H100, 11, 11_050));
  });

  it("is not applicable to requests that generate nothing", () => {
    const { decode } = priced({}, { request: request(1000, { generates: false }), expectedOutputTokens: 0 });
    assert.deepEqual(decode, { ms: 0, basis: "not_applicable" });
  });

  it("stalls everyone there for the compute, and lengthens their steps while both are there", () => {
    const { interference } = priced({ load: decoding(10, 1000, 40) });
    const stall = prefillMs(H100, 1000, 0) - H100.prefillBaseMs;
    const longer = stepMs(H100, 11, 11_050) - stepMs(H100, 10, 10_000);
    close(interference.ms, 10 * (stall + 40 * longer));
    assert.equal(priced({}).interference.ms, 0);
  });

  it("is less where more is cached", () => {
    const facts = { load: decoding(10, 1000, 40) };
    const cold = priced(facts).interference.ms;
    assert.ok(priced(facts, { cachedTokens: [900] }).interference.ms < cold / 2);
  });
});

describe("eviction and preemption", () => {
  it("evicts nothing while there is room, and says what is not known", () => {
    const known = priced({ capacityTokens: 10_000 }, { heldTokens: [5000] });
    assert.equal(known.eviction.ms, 0);
    const unknown = priced({ capacityTokens: 10_000 });
    close(unknown.eviction.ms, 1.1 * H100.prefillMsPerKtok * 0.2 * (0.3 / 0.7), "full cache, prior of reuse");
    assert.equal(unknown.eviction.basis, "prior");
  });

  it("charges only what is pushed out, by the engine's own hit share", () => {
    const metrics = { atMs: 0, value: { prefixQueriedTokensTotal: 1000, prefixHitTokensTotal: 200 } };
    const facts = { capacityTokens: 10_000, metrics, latency: fixedLatency(H100, "learned") };
    const { eviction } = priced(facts, { heldTokens: [9500] });
    close(eviction.ms, 0.6 * H100.prefillMsPerKtok * 0.2 * 0.25);
    assert.equal(eviction.basis, "learned");
  });

  it("never evicts what is in use", () => {
    const { eviction } = priced({ load: decoding(10, 950, 10), capacityTokens: 10_000 }, { heldTokens: [10_000] });
    close(eviction.ms, 0.5 * H100.prefillMsPerKtok * 0.2 * (0.3 / 0.7));
  });

  it("is free while everything fits at its peak", () => {
    assert.equal(priced({ load: decoding(10, 1000, 100), capacityTokens: 12_000 }).preemption.ms, 0);
  });

  it("computes again what does not fit at the peak", () => {
    // Contexts of 1,000 that give 1,000 more on average: 10·(2,000 + 1,000)²/(8·1,000) = 11,250 at most, not 20,000.
    const facts = { load: decoding(10, 1000, 1000), capacityTokens: 12_000 };
    const average = (10_000 + 1100) / 11;
    close(priced(facts).preemption.ms, ((11_250 + 1100 - 12_000) / average) * prefillMs(H100, average, 0));
  });

  it("takes the engine's word for prefixes that many share", () => {
    const load = decoding(50, 8000, 100);
    const alone = priced({ load, capacityTokens: 100_000 });
    assert.ok(alone.preemption.ms > 0);
    const shared = priced({ load, capacityTokens: 100_000, metrics: { atMs: 0, value: { kvUsage: 0.13 } } });
    assert.equal(shared.preemption.ms, 0);
    assert.ok(shared.queue.ms < alone.queue.ms);
  });
});

describe("memory in use", () => {
  it("is what the engine said plus what was placed since", () => {
    const waiting = { sequences: 12, waitingSequences: 2, pendingPrefillTokens: 20_000, reservedKvTokens: 100_000 };
    const facts = { load: waiting, capacityTokens: 25_000, metrics: { atMs: 0, value: { kvUsage: 0.2 } } };
    // 5,000 + 20,000 are in use: the prompt of 1,000 has to wait for 0.48 of an average sequence to end.
    const { queue } = priced({ ...facts, earliestRemainingTokens: 10 });
    close(queue.ms, 10 * stepMs(H100, 0, 0) + (20_000 / 8192) * H100.prefillBaseMs);
    close(
      priced({ ...facts, earliestRemainingTokens: 10, load: { ...waiting, pendingPrefillTokens: 0 } }).queue.ms,
      H100.prefillBaseMs,
    );
  });
});

describe("lateness", () => {
  const classTargets = { ttftTargetMs: 500, tpotTargetMs: 10, weight: 2 };

  it("is nothing within the targets", () => {
    assert.equal(priced({}, { classTargets }).lateness.ms, 0);
  });

  it("counts what has been waited already, and slow steps per token", () => {
    const load = decoding(100, 4000, 100);
    const input = { classTargets, nowMs: 490, request: request(1000, { arrivedMs: 0 }) };
    const { lateness, queue, prefill } = priced({ load }, input);
    const joined = stepMs(H100, 101, 401_050);
    close(lateness.ms, 2 * (490 + queue.ms + prefill.ms - 500 + 99 * (joined - 10)));
  });

  it("is not applicable where nothing is promised", () => {
    assert.deepEqual(priced({}).lateness, { ms: 0, basis: "not_applicable" });
  });
});

describe("basis", () => {
  const learned = { latency: fixedLatency(H100, "learned") };

  it("is learned with a fresh scrape and a model that has learned", () => {
    const terms = priced({ ...learned, metrics: { atMs: -1000 } });
    assert.equal(terms.queue.basis, "learned");
    assert.equal(terms.prefill.basis, "learned");
  });

  it("is prior with a model that has not, or where nothing was ever scraped", () => {
    assert.equal(priced({ metrics: { atMs: 0 } }).prefill.basis, "prior");
    assert.equal(priced(learned).queue.basis, "prior");
  });

  it("is stale with an old scrape, and the figure does not vanish", () => {
    const load = decoding(10, 1000, 100);
    const { queue, decode, preemption } = priced({ ...learned, load, metrics: { atMs: -6000 } });
    for (const term of [queue, decode, preemption]) assert.equal(term.basis, "stale");
    close(queue.ms, stepMs(H100, 10, 10_000) / 2);
  });

  it("is stale for a share of hits that was counted long ago", () => {
    const value = { prefixQueriedTokensTotal: 1000, prefixHitTokensTotal: 200 };
    const eviction = (atMs: number) => priced({ ...learned, metrics: { atMs, value } }, { heldTokens: [0] }).eviction;
    assert.equal(eviction(-6000).basis, "stale");
    assert.equal(eviction(0).basis, "learned");
  });

  it("is prior for a prompt that could not be hashed", () => {
    const unhashable = request(1000);
    const asked = { ...unhashable, identity: { ...unhashable.identity, unhashable: "malformed_prompt" as const } };
    const { prefill } = priced({ ...learned, metrics: { atMs: 0 } }, { request: asked });
    assert.equal(prefill.basis, "prior");
    close(prefill.ms, prefillMs(H100, 1000, 0));
  });

  it("is prior where limits are assumed", () => {
    const facts = { ...learned, metrics: { atMs: 0 }, limitsBasis: "assumed" as const };
    assert.equal(priced(facts).preemption.basis, "prior");
    assert.equal(priced({ ...facts, limitsBasis: "engine" }).preemption.basis, "learned");
  });
});
