import type { ChoiceInput } from "./policy.ts";
import type { PriceSettings } from "./priceSettings.ts";
import type { PriceTable } from "./priceTable.ts";
import { adapterMs } from "./terms/adapter.ts";
import { decodeMs } from "./terms/decode.ts";
import { interferenceMs } from "./terms/interference.ts";
import { latenessMs } from "./terms/lateness.ts";
import { evictionMs, preemptionMs } from "./terms/memory.ts";
import { Outlook } from "./terms/outlook.ts";
import { fill, prefillMs } from "./terms/prefill.ts";
import type { Filling } from "./terms/prefill.ts";
import { queueMs } from "./terms/queue.ts";
import { COLUMN, LEARNED, MEASURED, NOT_APPLICABLE, PRIOR, STALE, TERMS } from "./terms/term.ts";

const WIDTH = TERMS.length;

/** Prices placements in predicted milliseconds. Holds scratch only: the same input gives the same prices. */
export class Pricer {
  readonly settings: PriceSettings;
  readonly #weights: Float64Array;
  readonly #outlook = new Outlook();
  readonly #filling: Filling = { readyTokens: 0, restoreMs: 0, computeMs: 0 };

  constructor(settings: PriceSettings) {
    this.settings = settings;
    this.#weights = Float64Array.from(TERMS, (term) => settings.weights[term]);
  }

  /** Fills a row of `table` per candidate. Linear in candidates; allocates nothing once the table has grown. */
  price(input: ChoiceInput, table: PriceTable): void {
    const { candidates } = input;
    table.resize(candidates.length);
    table.weights = this.#weights;
    for (let row = 0; row < candidates.length; row++) this.#priceRow(input, row, table);
  }

  #priceRow(input: ChoiceInput, row: number, table: PriceTable): void {
    const { settings } = this;
    const { request, classTargets } = input;
    const { latency, adapters } = input.candidates[row]!;
    const outlook = this.#outlook;
    const filling = this.#filling;
    outlook.look(input, row, settings);
    fill(outlook, latency, settings, filling);

    const queue = queueMs(outlook, settings);
    const prefill = prefillMs(outlook, filling, settings);
    const adapter = adapterMs(request.adapter, adapters, settings);
    const untilFirstTokenMs = queue + prefill + filling.restoreMs + adapter;

    const { terms, bases } = table;
    const at = row * WIDTH;
    terms[at + COLUMN.queue] = queue;
    terms[at + COLUMN.prefill] = prefill;
    terms[at + COLUMN.restore] = filling.restoreMs;
    terms[at + COLUMN.transfer] = 0;
    terms[at + COLUMN.adapter] = adapter;
    terms[at + COLUMN.decode] = decodeMs(outlook);
    terms[at + COLUMN.interference] = interferenceMs(outlook, filling);
    terms[at + COLUMN.eviction] = evictionMs(outlook, filling.readyTokens, settings);
    terms[at + COLUMN.preemption] = preemptionMs(outlook, latency);
    terms[at + COLUMN.lateness] = classTargets === null ? 0 : latenessMs(outlook, untilFirstTokenMs, classTargets);

    const { loadBasis, latencyBasis, limitsBasis, cacheBasis } = outlook;
    const busy = Math.max(loadBasis, latencyBasis);
    const tiered = outlook.diskTokens > outlook.cachedTokens;
    const reuse = Number.isNaN(outlook.hitShare) ? PRIOR : loadBasis === STALE ? STALE : MEASURED;
    bases[at + COLUMN.queue] = Math.max(busy, limitsBasis);
    bases[at + COLUMN.prefill] = Math.max(latencyBasis, cacheBasis);
    bases[at + COLUMN.restore] = tiered ? PRIOR : NOT_APPLICABLE;
    bases[at + COLUMN.transfer] = NOT_APPLICABLE;
    bases[at + COLUMN.adapter] = adapterBasis(request.adapter, adapter, adapters.basis);
    bases[at + COLUMN.decode] = request.generates ? Math.max(busy, LEARNED) : NOT_APPLICABLE;
    bases[at + COLUMN.interference] = Math.max(busy, cacheBasis);
    bases[at + COLUMN.eviction] = Math.max(
      reuse,
      latencyBasis,
      limitsBasis,
      Number.isNaN(outlook.heldTokens) ? PRIOR : LEARNED,
    );
    bases[at + COLUMN.preemption] = Math.max(busy, limitsBasis);
    bases[at + COLUMN.lateness] = classTargets === null ? NOT_APPLICABLE : Math.max(busy, limitsBasis, cacheBasis);

    let total = 0;
    for (let column = 0; column < WIDTH; column++) total += this.#weights[column]! * terms[at + column]!;
    // A candidate whose price cannot be computed is the last resort, not the winner that NaN would make it.
    table.totals[row] = Number.isFinite(total) ? total : Number.POSITIVE_INFINITY;
  }
}

function adapterBasis(adapter: string | null, loadMs: number, source: "metrics" | "modelled"): number {
  if (adapter === null) return NOT_APPLICABLE;
  if (loadMs > 0) return PRIOR;
  return source === "metrics" ? MEASURED : LEARNED;
}
