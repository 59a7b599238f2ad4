import { RouterError } from "#src/errors/routerError.ts";

/**
 * The prompt of a request as a plan over its body's bytes: nothing is copied until it is hashed.
 *
 * `text` and `tokens` are what the model reads, in the order in which engines render them. `root` is what changes every
 * KV block without being text at a place (adapter fields, template options, media without a position).
 */
export interface Prompt {
  readonly root: readonly PromptPlan[];
  readonly text: readonly PromptPlan[];
  readonly tokens: readonly Uint32Array[];
  /** A prompt field was there, but not in a form that an engine takes. */
  readonly malformed: boolean;
}

/**
 * Steps as number pairs. `[start, end]` with `start >= 0`: these bytes of the body. Else `[step, argument]`, with the
 * steps below.
 */
export type PromptPlan = readonly number[];

export const NO_PROMPT: Prompt = { root: [], text: [], tokens: [], malformed: false };

/** `[MARK, byte]`: one byte below 0x20. JSON strings cannot hold one unescaped, so no text can imitate a mark. */
export const MARK = -1;
/** What follows, up to DIGEST_END, counts as the eight bytes of its hash: images must not look like a long text. */
export const DIGEST_BEGIN = -2;
export const DIGEST_END = -3;
/** A place that was kept free and not needed. */
export const NOTHING = -4;

export const DIGEST_BYTES = 8;

/** Marks of the canonical text. The same conversation gives the same text through every API. */
export const Mark = {
  message: 0x01,
  system: 0x02,
  developer: 0x03,
  user: 0x04,
  assistant: 0x05,
  tool: 0x06,
  member: 0x07,
  part: 0x08,
  prompt: 0x0e,
} as const;

/** Far more pieces than any honest prompt has; bounds what a body of empty messages costs in memory. */
export const MAX_PLAN_STEPS = 4_000_000;

/** Writes a plan while a body is read. */
export class PlanWriter {
  readonly steps: number[] = [];

  /** Bytes of the body; joined to the step before where they touch. */
  copy(start: number, end: number): void {
    if (start === end) return;
    const steps = this.steps;
    const last = steps.length - 1;
    if (last > 0 && steps[last] === start && steps[last - 1]! >= 0) steps[last] = end;
    else this.#push(start, end);
  }

  mark(byte: number): void {
    this.#push(MARK, byte);
  }

  endDigest(): void {
    this.#push(DIGEST_END, 0);
  }

  /** Keeps a place for a step that is known only later; returns where. */
  reserve(): number {
    this.#push(NOTHING, 0);
    return this.steps.length - 2;
  }

  settle(place: number, step: number, argument: number): void {
    this.steps[place] = step;
    this.steps[place + 1] = argument;
  }

  #push(step: number, argument: number): void {
    if (this.steps.length >= 2 * MAX_PLAN_STEPS) throw tooManyPieces();
    this.steps.push(step, argument);
  }
}

function tooManyPieces(): RouterError {
  return new RouterError("invalid_request", `The prompt has more than ${MAX_PLAN_STEPS} pieces.`, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
  });
}
