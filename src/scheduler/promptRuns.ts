import type { Replica } from "#src/fleet/replica.ts";
import { FOREIGN_FRESH_MS } from "#src/fleet/replicaLoad.ts";
import { DEFAULT_PRICE_SETTINGS } from "#src/routing/priceSettings.ts";
import type { Placement } from "./placement.ts";

/** A prompt that begins while others decode waits for the rest of their step: half of it on average. */
const STEP_LEFT = 0.5;
/** A run that does not end is taken stock of after so many full steps: what is half done then is little beside it. */
const MOST_STEPS = 16;
/** Where more than this share of the time went into decode steps, it says more of them than of the prompts. */
const MOST_STEPS_SHARE = 0.5;
/** With more of its memory promised an engine may let prompts wait for it, and nobody sees how long. */
const MEMORY_SHARE = 0.9;

type Prompt = Pick<Placement, "replica" | "reservation" | "loadAtBinding" | "restoredTokens">;

/** Tokens of a prompt, as far as they are known. */
export interface PromptCounts {
  readonly newTokens: number;
  readonly cachedTokens: number;
}

/** Prompts that an engine computes one after the other, from the first that finds it without any. */
interface Run {
  readonly incarnation: number;
  readonly startMs: number;
  /** A decode step when it began; 0: nothing decoded. */
  readonly startStepMs: number;
  readonly waiting: Set<Prompt>;
  /** Computed, but how many tokens they had will be told later. */
  readonly untold: Set<Prompt>;
  /** Thousands of new tokens computed, as far as they were known in advance. */
  computedKtok: number;
  /** As it was told: thousands of new tokens, and the sum of u·(2·ctx + u) in thousands squared. */
  ktok: number;
  ktok2: number;
  clean: boolean;
  /** Once it has ended: how long it took, and what of that went into decode steps. */
  ended: { readonly elapsedMs: number; readonly stepsMs: number } | null;
}

/**
 * Learns prefill times from runs of prompts. An engine computes prompts in order but cuts steps across them, and a prompt
 * rides on the steps of all that decodes: how long one of several took, nobody outside can tell. How long all of them
 * took together can be told, from the first one's coming to the last one's first token.
 */
export class PromptRuns {
  readonly #current = new WeakMap<Replica, Run>();
  readonly #runOf = new WeakMap<Prompt, Run>();

  /** `seen`: its first token will be. */
  placed(prompt: Prompt, seen: boolean, nowMs: number): void {
    const { replica, loadAtBinding } = prompt;
    let run = this.#of(replica);
    if (run === undefined || run.waiting.size === 0) {
      if (!seen) return;
      run = this.#begun(replica, loadAtBinding.queueMs === 0, nowMs);
    }
    if (seen) this.#joined(prompt, run);
    if (!seen || prompt.restoredTokens > 0 || mayWait(prompt, nowMs)) run.clean = false;
  }

  /** Its first token came. How many tokens it had, and how many of them were cached, the usage will tell. */
  computed(prompt: Prompt, nowMs: number): void {
    const { replica, reservation } = prompt;
    const run = this.#runOf.get(prompt);
    if (run === undefined || !run.waiting.delete(prompt) || run !== this.#of(replica)) return;
    run.computedKtok += reservation.newTokens / 1000;
    run.untold.add(prompt);
    const steps = Math.max(1, (1000 * run.computedKtok) / DEFAULT_PRICE_SETTINGS.stepTokenBudget);
    if (run.waiting.size > 0 && steps < MOST_STEPS) return;
    const stepMs = (run.startStepMs + stepNowMs(replica, nowMs)) / 2;
    run.ended = { elapsedMs: nowMs - run.startMs, stepsMs: (STEP_LEFT + steps) * stepMs };
    if (run.waiting.size === 0) return;
    const next = this.#begun(replica, ![...run.waiting].some((left) => mayWait(left, nowMs)), nowMs);
    for (const left of run.waiting) this.#joined(left, next);
  }

  /** What it had to compute, told at the latest when it ends; null: nobody knows how much of it was computed. */
  told(prompt: Prompt, counts: PromptCounts | null): void {
    const run = this.#runOf.get(prompt);
    if (run === undefined) return;
    this.#runOf.delete(prompt);
    run.waiting.delete(prompt);
    const computed = run.untold.delete(prompt);
    if (!computed || counts === null) run.clean = false;
    else {
      add(run, counts);
      learn(run, prompt.replica);
    }
  }

  #begun(replica: Replica, clean: boolean, nowMs: number): Run {
    const run: Run = {
      incarnation: replica.incarnation,
      startMs: nowMs,
      startStepMs: stepNowMs(replica, nowMs),
      waiting: new Set(),
      untold: new Set(),
      computedKtok: 0,
      ktok: 0,
      ktok2: 0,
      clean,
      ended: null,
    };
    this.#current.set(replica, run);
    return run;
  }

  #joined(prompt: Prompt, run: Run): void {
    run.waiting.add(prompt);
    this.#runOf.set(prompt, run);
  }

  #of(replica: Replica): Run | undefined {
    const run = this.#current.get(replica);
    return run?.incarnation === replica.incarnation ? run : undefined;
  }
}

function add(run: Run, { newTokens, cachedTokens }: PromptCounts): void {
  const u = Math.max(0, newTokens) / 1000;
  run.ktok += u;
  run.ktok2 += u * ((2 * cachedTokens) / 1000 + u);
}

function learn({ clean, ended, untold, ktok, ktok2 }: Run, { latency }: Replica): void {
  if (!clean || ended === null || untold.size > 0) return;
  if (ended.stepsMs > MOST_STEPS_SHARE * ended.elapsedMs) return;
  latency.observePrefills(ktok, ktok2, ended.elapsedMs, ended.stepsMs);
}

/** Zero where nothing decodes. */
function stepNowMs({ load, latency }: Replica, nowMs: number): number {
  const { decodingSequences, decodeKvTokens } = load.at(nowMs);
  return decodingSequences < 0.5 ? 0 : latency.stepMs(decodingSequences, decodeKvTokens);
}

/** Whether it may have to wait for memory or for a slot, behind nobody's prompt. */
function mayWait({ replica, reservation, loadAtBinding }: Prompt, nowMs: number): boolean {
  const { maxRunningRequests, kvCapacityTokens } = replica.limits();
  const { decodingSequences, decodeKvTokens } = loadAtBinding;
  const { metrics } = replica;
  const fresh = metrics !== null && nowMs - metrics.atMs <= FOREIGN_FRESH_MS;
  // What several share, the ledger counts for each.
  const usage = fresh ? (metrics.value.kvUsage ?? 1) : 1;
  const usedTokens = Math.min(decodeKvTokens, usage * kvCapacityTokens);
  return (
    usedTokens + reservation.promptTokens > MEMORY_SHARE * kvCapacityTokens ||
    decodingSequences + reservation.sequences > maxRunningRequests
  );
}
