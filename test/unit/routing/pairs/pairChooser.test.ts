import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import type { ReplicaLabels } from "#src/discovery/replicaSpec.ts";
import { Links } from "#src/fleet/links/links.ts";
import type { LinkEnd } from "#src/fleet/links/links.ts";
import { Transfer } from "#src/fleet/links/transfer.ts";
import { PairChooser } from "#src/routing/pairs/pairChooser.ts";
import type { PricedPair } from "#src/routing/pairs/pairChooser.ts";
import type { PairInput } from "#src/routing/pairs/pairInput.ts";
import { Pricer } from "#src/routing/price.ts";
import { DEFAULT_PRICE_SETTINGS } from "#src/routing/priceSettings.ts";
import { PriceTable } from "#src/routing/priceTable.ts";
import { COLUMN } from "#src/routing/terms/term.ts";
import { decoding, replica, request } from "../pool.ts";

interface Scene {
  promptTokens: number;
  outputTokens?: number;
  prefills: { labels?: ReplicaLabels; cached?: number; queueMs?: number }[];
  decodes: { labels?: ReplicaLabels; cached?: number; decoding?: number; slots?: number; remaining?: number }[];
  links?: Links;
  targets?: PairInput["classTargets"];
}

function sceneInput(scene: Scene): PairInput & { ends: { from: LinkEnd[]; to: LinkEnd[] } } {
  const links = scene.links ?? new Links();
  const from = scene.prefills.map(({ labels = {} }, at) => ({ id: `p${at}`, index: at, labels }));
  const to = scene.decodes.map(({ labels = {} }, at) => ({ id: `d${at}`, index: from.length + at, labels }));
  links.members(from, to);
  const none = { hostTokens: null, diskTokens: null, heldTokens: null, lineMs: null };
  return {
    ends: { from, to },
    request: request(scene.promptTokens),
    prefill: {
      ...none,
      candidates: scene.prefills.map(({ queueMs = 0 }) =>
        replica({
          load: { sequences: queueMs > 0 ? 1 : 0, waitingSequences: queueMs > 0 ? 1 : 0, pendingPrefillMs: queueMs },
        }),
      ),
      cachedTokens: scene.prefills.map(({ cached = 0 }) => cached),
    },
    decode: {
      ...none,
      candidates: scene.decodes.map(({ decoding: there = 0, slots = 256, remaining = 100 }) =>
        replica({ load: decoding(there, 1000, remaining), slots }),
      ),
      cachedTokens: scene.decodes.map(({ cached = 0 }) => cached),
    },
    link: (p, d) => links.between(from[p]!, to[d]!),
    leastTransferMs: (bytes) => links.leastMs(bytes),
    kvBytesPerToken: 131_072,
    reusesDecodeCache: true,
    expectedOutputTokens: scene.outputTokens ?? 200,
    nowMs: 0,
    random: new SeededRandom(1),
    classTargets: scene.targets ?? null,
  };
}

function chosen(scene: Scene): PricedPair {
  return new PairChooser(DEFAULT_PRICE_SETTINGS).choose(sceneInput(scene), Number.POSITIVE_INFINITY)!;
}

/** What the request would cost whole, on the decode replicas of the scene. */
function wholeMs(scene: Scene): number {
  const { decode, ...input } = sceneInput(scene);
  const table = new PriceTable();
  new Pricer(DEFAULT_PRICE_SETTINGS).price({ ...input, ...decode, lineMs: null }, table);
  return Math.min(...table.totals.subarray(0, table.rows));
}

const RACK: ReplicaLabels = { rack: "r1", zone: "z" };

describe("the price of a pair", () => {
  it("takes the prefix of both sides into account: computing less, and moving less", () => {
    const p = { labels: RACK };
    const cold = chosen({ promptTokens: 8000, prefills: [p], decodes: [{ labels: RACK }] });
    const warm = chosen({ promptTokens: 8000, prefills: [p, { ...p, cached: 6400 }], decodes: [{ labels: RACK }] });
    assert.equal(warm.prefillAt, 1);
    assert.ok(warm.terms[COLUMN.prefill]! < 0.35 * cold.terms[COLUMN.prefill]!);
    const both = chosen({
      promptTokens: 8000,
      prefills: [p],
      decodes: [{ labels: RACK }, { labels: RACK, cached: 6400 }],
    });
    assert.equal(both.decodeAt, 1);
    assert.equal(both.transferBytes, 1600 * 131_072);
    assert.ok(both.terms[COLUMN.transfer]! < 0.35 * cold.terms[COLUMN.transfer]!);
  });

  it("waits for the queue of both sides, and for that of the decode side only as long as the prompt does not last", () => {
    const busy = chosen({ promptTokens: 4000, prefills: [{ queueMs: 500 }, {}], decodes: [{}] });
    assert.equal(busy.prefillAt, 1);
    const full = { decoding: 4, slots: 4, remaining: 20 };
    const short = chosen({ promptTokens: 100, prefills: [{}], decodes: [full] });
    const long = chosen({ promptTokens: 16_000, prefills: [{}], decodes: [full] });
    assert.ok(short.terms[COLUMN.queue]! > 10, `${short.terms[COLUMN.queue]}`);
    assert.ok(long.terms[COLUMN.queue]! < short.terms[COLUMN.queue]! / 2, `${long.terms[COLUMN.queue]}`);
  });

  it("prefers the near decode replica, until the far one is less busy by more than the way is longer", () => {
    const near = { rack: "r1", zone: "z" };
    const far = { rack: "r2", zone: "z" };
    const scene = (there: number): Scene => ({
      promptTokens: 8000,
      prefills: [{ labels: near }],
      decodes: [{ labels: near, decoding: there }, { labels: far }],
    });
    assert.equal(chosen(scene(0)).decodeAt, 0);
    assert.equal(chosen(scene(0)).link.level, "rack");
    assert.equal(chosen(scene(128)).decodeAt, 1);
    assert.equal(chosen(scene(128)).link.level, "zone");
  });

  it("sees what else is on the link", () => {
    const links = new Links();
    const scene: Scene = {
      promptTokens: 8000,
      links,
      prefills: [{ labels: { host: "a", rack: "r" } }],
      decodes: [{ labels: { host: "b", rack: "r" } }, { labels: { host: "c", rack: "r" } }],
    };
    const chooser = new PairChooser(DEFAULT_PRICE_SETTINGS);
    const input = sceneInput(scene);
    const free = chooser.choose(input, Number.POSITIVE_INFINITY)!.totalMs;
    // Into host b, from elsewhere: 20 GB at 25 GB/s.
    const elsewhere: LinkEnd = { id: "p9", index: 9, labels: { host: "z", rack: "r" } };
    for (let at = 0; at < 20; at++) new Transfer(links.between(elsewhere, input.ends.to[0]!), 1e9, 0).begin(0);
    for (let at = 0; at < 10; at++) {
      const found = chooser.choose(input, Number.POSITIVE_INFINITY)!;
      assert.equal(found.decodeAt, 1);
      assert.ok(Math.abs(found.totalMs - free) < 0.01 * free);
    }
  });
});

describe("not splitting, at equal terms", () => {
  const split = (scene: Scene): number => chosen(scene).totalMs;

  it("wins for a short prompt and for one that the decode side has cached", () => {
    const rest = { prefills: [{ labels: RACK }], decodes: [{ labels: RACK, decoding: 8 }] };
    assert.ok(wholeMs({ promptTokens: 60, ...rest }) < split({ promptTokens: 60, ...rest }));
    const cached = { prefills: [{ labels: RACK }], decodes: [{ labels: RACK, decoding: 8, cached: 7936 }] };
    assert.ok(wholeMs({ promptTokens: 8000, ...cached }) < split({ promptTokens: 8000, ...cached }));
  });

  it("loses for a long prompt that would stall a busy batch", () => {
    const scene = { promptTokens: 8000, prefills: [{ labels: RACK }], decodes: [{ labels: RACK, decoding: 32 }] };
    assert.ok(split(scene) < wholeMs(scene));
  });
});

describe("choosing a pair", () => {
  it("has none where one side is empty", () => {
    const scene: Scene = { promptTokens: 100, prefills: [], decodes: [{}] };
    assert.equal(new PairChooser(DEFAULT_PRICE_SETTINGS).choose(sceneInput(scene), 1e9), null);
  });

  it("counts lateness of the first token over both legs", () => {
    const base = { promptTokens: 8000, prefills: [{ labels: RACK }], decodes: [{ labels: RACK }] };
    const inTime = chosen({ ...base, targets: { ttftTargetMs: 10_000, tpotTargetMs: 1000, weight: 1 } });
    const late = chosen({ ...base, targets: { ttftTargetMs: 1, tpotTargetMs: 1000, weight: 1 } });
    assert.equal(inTime.terms[COLUMN.lateness], 0);
    const untilFirst = late.terms[COLUMN.prefill]! + late.terms[COLUMN.transfer]! + late.terms[COLUMN.queue]!;
    assert.ok(late.terms[COLUMN.lateness]! > untilFirst - 1);
  });
});
