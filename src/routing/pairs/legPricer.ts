import type { ChoiceInput } from "../policy.ts";
import type { PriceSettings } from "../priceSettings.ts";
import { PriceTable } from "../priceTable.ts";
import { adapterMs } from "../terms/adapter.ts";
import { interferenceMs } from "../terms/interference.ts";
import { evictionMs, preemptionMs } from "../terms/memory.ts";
import { Outlook } from "../terms/outlook.ts";
import { fill, prefillMs } from "../terms/prefill.ts";
import type { Filling } from "../terms/prefill.ts";
import { queueMs } from "../terms/queue.ts";
import { COLUMN, LEARNED, MEASURED, NOT_APPLICABLE, PRIOR, TERMS } from "../terms/term.ts";
import type { LegCandidates, PairInput } from "./pairInput.ts";

const WIDTH = TERMS.length;
/** The prefill leg is asked for one token, which nobody reads. */
const PREFILL_LEG_TOKENS = 1;
/** Its KV arrives as it is; what the decode leg computes is the step that yields the first token. */
const NOTHING_TO_COMPUTE: Filling = { readyTokens: 0, restoreMs: 0, computeMs: 0 };

/** The prefill legs of one choice, a row per candidate. `totals` of the table: all terms, weighted. */
export class PrefillLegs {
  readonly table = new PriceTable();
  /** From now until the prompt's KV is complete. */
  readyMs = new Float64Array(8);
  readonly #outlook = new Outlook();
  readonly #filling: Filling = { readyTokens: 0, restoreMs: 0, computeMs: 0 };

  price(input: PairInput, settings: PriceSettings, weights: Float64Array): void {
    const outlook = this.#outlook;
    const filling = this.#filling;
    const { candidates } = input.prefill;
    const one = asChoice(input, input.prefill, PREFILL_LEG_TOKENS);
    const { table } = this;
    table.resize(candidates.length);
    if (this.readyMs.length < candidates.length) this.readyMs = new Float64Array(2 * candidates.length);
    for (let row = 0; row < candidates.length; row++) {
      const { latency, adapters } = candidates[row]!;
      outlook.look(one, row, settings);
      fill(outlook, latency, settings, filling);
      const { terms, bases, totals } = table;
      const at = row * WIDTH;
      const queue = queueMs(outlook, settings);
      const prefill = prefillMs(outlook, filling, settings);
      const adapter = adapterMs(input.request.adapter, adapters, settings);
      terms.fill(0, at, at + WIDTH);
      terms[at + COLUMN.queue] = queue;
      terms[at + COLUMN.prefill] = prefill;
      terms[at + COLUMN.restore] = filling.restoreMs;
      terms[at + COLUMN.adapter] = adapter;
      terms[at + COLUMN.interference] = interferenceMs(outlook, filling);
      terms[at + COLUMN.eviction] = evictionMs(outlook, filling.readyTokens, settings);
      terms[at + COLUMN.preemption] = preemptionMs(outlook, latency);
      this.readyMs[row] = queue + prefill + filling.restoreMs + adapter;
      totals[row] = weighted(terms, at, weights);
      legBases(bases, at, outlook);
      bases[at + COLUMN.restore] = outlook.diskTokens > outlook.cachedTokens ? PRIOR : NOT_APPLICABLE;
      bases[at + COLUMN.adapter] = adapterBasis(input.request.adapter, adapter);
    }
  }
}

/**
 * The decode legs of one choice. `totals` of the table: all terms but the queue, weighted; how long the queue keeps this
 * request waiting depends on when its KV arrives.
 */
export class DecodeLegs {
  readonly table = new PriceTable();
  /** From now until a slot and memory for it are free. */
  freeMs = new Float64Array(8);
  /** Rest of the step that is under way when the KV arrives. */
  joinMs = new Float64Array(8);
  /** From the arrival of the KV in the batch to the first token: adapter and one step. */
  firstStepMs = new Float64Array(8);
  /** KV to be moved. */
  bytes = new Float64Array(8);
  readonly #outlook = new Outlook();

  price(input: PairInput, settings: PriceSettings, weights: Float64Array): void {
    const outlook = this.#outlook;
    const { candidates } = input.decode;
    const one = asChoice(input, input.decode, input.expectedOutputTokens);
    const { table } = this;
    this.#widen(candidates.length);
    table.resize(candidates.length);
    const { classTargets } = input;
    for (let row = 0; row < candidates.length; row++) {
      const { latency, adapters } = candidates[row]!;
      outlook.look(one, row, settings);
      const { terms, bases, totals } = table;
      const at = row * WIDTH;
      const steps = outlook.outputTokens;
      const stepMs = outlook.joinedStepMs;
      const adapter = adapterMs(input.request.adapter, adapters, settings);
      terms.fill(0, at, at + WIDTH);
      terms[at + COLUMN.adapter] = adapter;
      terms[at + COLUMN.decode] = steps * stepMs;
      terms[at + COLUMN.interference] = interferenceMs(outlook, NOTHING_TO_COMPUTE);
      terms[at + COLUMN.eviction] = evictionMs(outlook, outlook.cachedTokens, settings);
      terms[at + COLUMN.preemption] = preemptionMs(outlook, latency);
      if (classTargets !== null)
        terms[at + COLUMN.lateness] = classTargets.weight * steps * Math.max(0, stepMs - classTargets.tpotTargetMs);
      totals[row] = weighted(terms, at, weights);
      terms[at + COLUMN.queue] = queueMs(outlook, settings);
      this.freeMs[row] = terms[at + COLUMN.queue]!;
      this.joinMs[row] = outlook.decoding > 0 ? outlook.stepNowMs / 2 : 0;
      this.firstStepMs[row] = adapter + stepMs;
      const kept = input.reusesDecodeCache ? outlook.cachedTokens : 0;
      this.bytes[row] = (outlook.promptTokens - kept) * input.kvBytesPerToken;
      legBases(bases, at, outlook);
      bases[at + COLUMN.decode] = Math.max(bases[at + COLUMN.queue]!, LEARNED);
      bases[at + COLUMN.adapter] = adapterBasis(input.request.adapter, adapter);
    }
  }

  #widen(rows: number): void {
    if (this.bytes.length >= rows) return;
    this.freeMs = new Float64Array(2 * rows);
    this.joinMs = new Float64Array(2 * rows);
    this.firstStepMs = new Float64Array(2 * rows);
    this.bytes = new Float64Array(2 * rows);
  }
}

function asChoice(input: PairInput, side: LegCandidates, outputTokens: number): ChoiceInput {
  return {
    request: input.request,
    candidates: side.candidates,
    cachedTokens: side.cachedTokens,
    hostTokens: side.hostTokens,
    diskTokens: side.diskTokens,
    heldTokens: side.heldTokens,
    lineMs: side.lineMs,
    expectedOutputTokens: outputTokens,
    nowMs: input.nowMs,
    random: input.random,
    classTargets: input.classTargets,
  };
}

function weighted(terms: Float64Array, at: number, weights: Float64Array): number {
  let total = 0;
  for (let column = 0; column < WIDTH; column++) total += weights[column]! * terms[at + column]!;
  return Number.isFinite(total) ? total : Number.POSITIVE_INFINITY;
}

/** As `Pricer` does for a whole request; what a leg has not is not applicable. */
function legBases(bases: Uint8Array, at: number, outlook: Outlook): void {
  const { loadBasis, latencyBasis, limitsBasis, cacheBasis } = outlook;
  const busy = Math.max(loadBasis, latencyBasis);
  bases.fill(NOT_APPLICABLE, at, at + WIDTH);
  bases[at + COLUMN.queue] = Math.max(busy, limitsBasis);
  bases[at + COLUMN.prefill] = Math.max(latencyBasis, cacheBasis);
  bases[at + COLUMN.interference] = Math.max(busy, cacheBasis);
  bases[at + COLUMN.eviction] = Math.max(
    Number.isNaN(outlook.hitShare) ? PRIOR : MEASURED,
    latencyBasis,
    limitsBasis,
    Number.isNaN(outlook.heldTokens) ? PRIOR : LEARNED,
  );
  bases[at + COLUMN.preemption] = Math.max(busy, limitsBasis);
}

function adapterBasis(adapter: string | null, loadMs: number): number {
  if (adapter === null) return NOT_APPLICABLE;
  return loadMs > 0 ? PRIOR : MEASURED;
}
