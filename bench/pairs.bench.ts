/**
 * One choice among 64 prefill and 64 decode replicas in mid-work, over links with transfers on them:
 *
 *     node bench/pairs.bench.ts
 *
 * Prints percentiles of single choices, timed one by one, and how many of the 4,096 pairs were priced. Other processes only add to a time: the
 * quietest batch of a thousand shows the code's own.
 */
import { SeededRandom } from "#src/determinism/random.ts";
import { Links } from "#src/fleet/links/links.ts";
import { Transfer } from "#src/fleet/links/transfer.ts";
import { PairChooser } from "#src/routing/pairs/pairChooser.ts";
import { DEFAULT_PRICE_SETTINGS } from "#src/routing/priceSettings.ts";
import { modelledPairs } from "../test/unit/routing/pairs/modelledPairs.ts";

const SIDE = 64;
const WARM_UP = 5_000;
const BATCHES = 30;
const BATCH = 1000;

for (const busy of [false, true]) {
  const random = new SeededRandom(7);
  const links = new Links();
  const inputs = Array.from({ length: 64 }, () =>
    modelledPairs({ prefills: SIDE, decodes: SIDE, busy, links, random }),
  );
  const ends = inputs[0]!;
  for (let at = busy ? 64 : 0; at > 0; at--)
    new Transfer(ends.links(random.below(SIDE), random.below(SIDE)), 1e9, 50 * random.next()).begin(0);
  const chooser = new PairChooser(DEFAULT_PRICE_SETTINGS);
  const us = new Float64Array(BATCHES * BATCH);
  let looked = 0;
  for (let at = -WARM_UP; at < us.length; at++) {
    const { input } = inputs[random.below(inputs.length)]!;
    const startNs = process.hrtime.bigint();
    const pair = chooser.choose(input, Number.POSITIVE_INFINITY);
    const tookUs = Number(process.hrtime.bigint() - startNs) / 1000;
    if (at < 0) continue;
    us[at] = tookUs;
    looked += pair!.looked;
  }
  const batches = Array.from({ length: BATCHES }, (_, at) =>
    percentile(us.subarray(at * BATCH, (at + 1) * BATCH), 0.99),
  );
  process.stdout.write(
    `${busy ? "busy" : "idle"}: p50 ${percentile(us, 0.5).toFixed(1)} µs, p99 ${percentile(us, 0.99).toFixed(1)} µs, ` +
      `p99 of the quietest batch ${Math.min(...batches).toFixed(1)} µs; ` +
      `${(looked / us.length).toFixed(1)} of ${SIDE * SIDE} pairs priced\n`,
  );
}

function percentile(values: Float64Array, share: number): number {
  return values.toSorted()[Math.floor(share * (values.length - 1))]!;
}
