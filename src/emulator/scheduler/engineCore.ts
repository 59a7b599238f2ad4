import { RouterError } from "#src/errors/routerError.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";
import { AdapterSlots } from "./adapterSlots.ts";
import { countQuery, noCounts } from "./engineCounters.ts";
import { KvMemory, type KvMemoryOptions } from "./kvMemory.ts";
import { decodes, missingTokens, Sequence, type SequenceSpec } from "./sequence.ts";
import { keptOf, type Speculation } from "./speculation.ts";
import { StepCost } from "./stepCost.ts";
import { WaitingQueue } from "./waitingQueue.ts";

export interface EngineCoreOptions extends KvMemoryOptions {
  readonly times: StepTimes;
  /** Batch slots (vLLM's `max_num_seqs`). */
  readonly maxRunning: number;
  /** Token budget of one step (vLLM's `max_num_batched_tokens`); longer prompts are computed in chunks. */
  readonly maxBatchedTokens: number;
  readonly policy: "fcfs" | "priority";
  /** LoRA adapters that fit into GPU memory, and what loading one adds to the step that needs it. */
  readonly maxResidentAdapters: number;
  readonly adapterLoadMs: number;
  /** What copying a block from the host takes; copies run beside the step's computation, which waits for them. */
  readonly restoreMsPerBlock?: number;
  /** Absent: one token per sequence and step. */
  readonly speculation?: Speculation;
}

/** What one step did. The arrays are reused: they hold until the next call of `step`. */
export interface StepOutcome<Owner> {
  /** The step's results are there this long after it began; 0 and nothing else if there was nothing to do. */
  readonly durationMs: number;
  /** Prompt and output tokens computed. */
  readonly tokens: number;
  /** Each got one more token, or several with speculation. */
  readonly emitted: readonly Sequence<Owner>[];
  /** Each is done; those that generate are also in `emitted`. */
  readonly finished: readonly Sequence<Owner>[];
}

/** Adapters wait at most for the batch to drain; looking further down the queue than this each step would cost too much. */
const DEFERRED_SCAN_LIMIT = 256;

/**
 * The scheduler of vLLM V1, modelled: no I/O, no clock. The caller submits, then calls `step` whenever the step before
 * has ended; its results count from `nowMs + durationMs` on. Running sequences come first, in order, so decodes are not
 * held up by new prompts; what is left of the token budget goes to waiting ones. Cost of a step: O(sequences in it).
 */
export class EngineCore<Owner> {
  readonly options: EngineCoreOptions;
  /** Every step takes this many times as long: a throttled GPU. */
  slowFactor = 1;
  readonly counters = noCounts();
  readonly #memory: KvMemory<Owner>;
  readonly #waiting: WaitingQueue<Owner>;
  readonly #adapters: AdapterSlots;
  readonly #cost: StepCost;
  readonly #running: Sequence<Owner>[] = [];
  readonly #emitted: Sequence<Owner>[] = [];
  readonly #finished: Sequence<Owner>[] = [];
  #stepTokens = 0;
  #adapterLoads = 0;
  #restoredBlocks = 0;

  constructor(options: EngineCoreOptions) {
    this.options = options;
    this.#memory = new KvMemory(options);
    this.#waiting = new WaitingQueue(options.policy === "priority");
    this.#adapters = new AdapterSlots(options.maxResidentAdapters);
    this.#cost = new StepCost(options.times, options.speculation?.draftMs ?? 0);
  }

  get running(): readonly Sequence<Owner>[] {
    return this.#running;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  get hasWork(): boolean {
    return this.#running.length > 0 || this.#waiting.length > 0;
  }

  get freeBlocks(): number {
    return this.#memory.freeBlocks;
  }

  /** Share of KV memory held by sequences, 0..1; cached blocks that nobody holds count as free. */
  get kvUsage(): number {
    return this.#memory.usage;
  }

  get residentAdapters(): readonly string[] {
    return this.#adapters.resident;
  }

  *waiting(): Generator<Sequence<Owner>> {
    for (let next = this.#waiting.first; next !== null; next = next.after) yield next;
  }

  /** References held on a block; for tests of the bookkeeping. */
  references(block: number): number {
    return this.#memory.references(block);
  }

  /** Whether a sequence of this size can ever run here. */
  fits(promptTokens: number, outputTokens: number): boolean {
    return this.#memory.fits(promptTokens + outputTokens);
  }

  /** Queues a sequence. Throws RouterError for one that does not fit: it would block all behind it for ever. */
  submit(spec: SequenceSpec<Owner>, nowMs: number): Sequence<Owner> {
    if (!this.fits(spec.promptTokens, spec.outputTokens)) throw tooLarge(spec);
    const sequence = new Sequence(spec, this.counters.submitted++, nowMs, this.options.blockTokens);
    this.#waiting.add(sequence);
    return sequence;
  }

  /** Ends a sequence early and frees what it holds. False if it had ended already. */
  abort(sequence: Sequence<Owner>): boolean {
    if (sequence.ended) return false;
    if (sequence.state === "waiting") this.#waiting.remove(sequence);
    else this.#running.splice(this.#running.indexOf(sequence), 1);
    this.#leave(sequence);
    sequence.state = "aborted";
    this.counters.aborted++;
    return true;
  }

  /** Empties the prefix cache; false while any sequence holds blocks. */
  clearCache(): boolean {
    return this.#memory.clearCache();
  }

  unloadAdapter(adapter: string): void {
    this.#adapters.unload(adapter);
  }

  step(nowMs: number): StepOutcome<Owner> {
    this.#cost.reset();
    this.#emitted.length = 0;
    this.#finished.length = 0;
    this.#stepTokens = 0;
    this.#adapterLoads = 0;
    this.#restoredBlocks = 0;

    const preemptionsBefore = this.counters.preemptions;
    const left = this.#continueRunning(this.options.maxBatchedTokens);
    // Whoever was just preempted must not get its memory straight back.
    if (this.counters.preemptions === preemptionsBefore) this.#admitWaiting(left, nowMs);

    const computeMs = this.#cost.durationMs + this.#adapterLoads * this.options.adapterLoadMs;
    const restoreMs = this.#restoredBlocks * (this.options.restoreMsPerBlock ?? 0);
    const durationMs = Math.max(computeMs, restoreMs) * this.slowFactor;
    this.#settle(nowMs + durationMs);
    if (this.#stepTokens > 0) this.counters.steps++;
    return { durationMs, tokens: this.#stepTokens, emitted: this.#emitted, finished: this.#finished };
  }

  /** Returns the budget that is left. */
  #continueRunning(budget: number): number {
    let left = budget;
    for (let at = 0; at < this.#running.length && left > 0; at++) {
      const sequence = this.#running[at] as Sequence<Owner>;
      const tokens = Math.min(missingTokens(sequence), left);
      const drafted = this.#draftsFor(sequence, left);
      let victim: Sequence<Owner> | null = null;
      while (victim !== sequence && !this.#memory.cover(sequence, sequence.computedTokens + tokens + drafted)) {
        victim = this.#victimFrom(at);
        this.#preempt(victim);
      }
      if (victim === sequence) {
        at--;
        continue;
      }
      this.#compute(sequence, tokens, drafted);
      left -= tokens + drafted;
    }
    return left;
  }

  /** Tokens to draft for a sequence beside the one it decodes in any case: not past its end, nor the budget. */
  #draftsFor(sequence: Sequence<Owner>, budget: number): number {
    const { speculation } = this.options;
    if (speculation === undefined || !decodes(sequence)) return 0;
    const left = sequence.outputTokens - sequence.generatedTokens;
    return Math.max(0, Math.min(speculation.draftTokens, left - 1, budget - 1));
  }

  #admitWaiting(budget: number, nowMs: number): void {
    let left = budget;
    let deferred = 0;
    let next = this.#waiting.first;
    while (next !== null && left > 0 && this.#running.length < this.options.maxRunning) {
      const sequence: Sequence<Owner> = next;
      next = sequence.after;
      if (sequence.adapter !== null && !this.#adapters.admits(sequence.adapter)) {
        if (++deferred >= DEFERRED_SCAN_LIMIT) break;
        continue;
      }
      const tokens = this.#admit(sequence, left, nowMs);
      if (tokens === 0) break;
      left -= tokens;
    }
  }

  /** Moves a waiting sequence into the batch; returns how many tokens it computes, 0 if there is no memory for it. */
  #admit(sequence: Sequence<Owner>, budget: number, nowMs: number): number {
    const tokens = this.#memory.enter(sequence, budget);
    if (tokens === 0) return 0;
    if (sequence.firstScheduledMs === null) {
      sequence.firstScheduledMs = nowMs;
      sequence.cachedTokens = sequence.computedTokens;
      countQuery(this.counters, sequence, this.options);
    }
    this.#restoredBlocks += sequence.restoredBlocks;
    this.#waiting.remove(sequence);
    sequence.state = "running";
    this.#running.push(sequence);
    if (sequence.adapter !== null && this.#adapters.enter(sequence.adapter)) this.#adapterLoads++;
    this.#compute(sequence, tokens);
    return tokens;
  }

  #compute(sequence: Sequence<Owner>, tokens: number, drafted = 0): void {
    const missing = missingTokens(sequence);
    if (decodes(sequence)) this.#cost.addDecode(sequence.computedTokens + 1, drafted);
    else this.#cost.addChunk(tokens, sequence.computedTokens);
    const kept = drafted === 0 ? 0 : this.#verify(drafted);
    sequence.computedTokens += tokens + kept;
    this.#stepTokens += tokens + drafted;
    if (tokens < missing) return;
    if (sequence.outputTokens > 0) {
      sequence.generatedTokens += 1 + kept;
      this.counters.generatedTokens += 1 + kept;
      this.#emitted.push(sequence);
    }
    if (sequence.generatedTokens >= sequence.outputTokens) this.#finished.push(sequence);
  }

  #verify(drafted: number): number {
    const kept = keptOf(drafted, this.options.speculation!);
    this.counters.draftTokens += drafted;
    this.counters.acceptedDraftTokens += kept;
    return kept;
  }

  /** Among those not yet served in this step: the last to have come, under the priority policy the least urgent. */
  #victimFrom(at: number): Sequence<Owner> {
    let victim = this.#running[this.#running.length - 1] as Sequence<Owner>;
    if (this.options.policy === "fcfs") return victim;
    for (let index = at; index < this.#running.length; index++) {
      const other = this.#running[index] as Sequence<Owner>;
      if (other.priority > victim.priority || (other.priority === victim.priority && other.number > victim.number))
        victim = other;
    }
    return victim;
  }

  /** Takes everything from a running sequence; it will be computed again, but for what is still cached then. */
  #preempt(victim: Sequence<Owner>): void {
    this.#running.splice(this.#running.lastIndexOf(victim), 1);
    this.#leave(victim);
    victim.state = "waiting";
    victim.computedTokens = 0;
    victim.preemptions++;
    this.counters.preemptions++;
    this.#waiting.putBack(victim);
  }

  #leave(sequence: Sequence<Owner>): void {
    this.#memory.release(sequence);
    if (sequence.state === "running" && sequence.adapter !== null) this.#adapters.leave(sequence.adapter);
  }

  /** Books what the step produced, at the time when it ends. */
  #settle(endMs: number): void {
    for (const sequence of this.#emitted) {
      if (sequence.generatedTokens === 1) {
        sequence.firstTokenMs = endMs;
        this.counters.promptTokens += sequence.promptTokens;
      } else {
        sequence.lastGapMs = endMs - sequence.lastTokenMs;
      }
      sequence.lastTokenMs = endMs;
    }
    if (this.#finished.length === 0) return;
    for (const sequence of this.#finished) {
      if (sequence.outputTokens === 0) this.counters.promptTokens += sequence.promptTokens;
      this.#leave(sequence);
      sequence.state = "finished";
      sequence.finishedMs = endMs;
      this.counters.finished++;
    }
    let kept = 0;
    for (const sequence of this.#running) if (sequence.state === "running") this.#running[kept++] = sequence;
    this.#running.length = kept;
  }
}

function tooLarge({ promptTokens, outputTokens }: SequenceSpec<unknown>): RouterError {
  const message = `A prompt of ${promptTokens} and an answer of ${outputTokens} tokens exceed the engine's KV memory.`;
  return new RouterError("invalid_request", message, { fault: "client", httpStatus: 400, retryable: false });
}
