const LF = 10;
const CR = 13;
const OPEN = 91;
const CLOSE = 93;
/** An event that grows beyond this is no usage chunk; it passes as it comes. */
const HELD_MAX_BYTES = 65_536;

/** Passes a stretch of the stream on; valid until the end of the read, as what was put in. */
export type Emit = (bytes: Buffer, start: number, end: number) => void;

/**
 * Takes the usage chunk (`choices: []`) out of a stream whose client did not ask for it; everything else passes
 * unchanged. Only for requests into which the router itself wrote `include_usage`. An event is passed on when it is
 * complete, so an unfinished one is held, bounded, until its blank line has come.
 */
export class UsageStripper {
  #held: Buffer | null = null;
  #overlong = false;

  push(bytes: Buffer, start: number, end: number, emit: Emit): void {
    let data = bytes;
    let from = start;
    let to = end;
    if (this.#held !== null) {
      data = Buffer.concat([this.#held, bytes.subarray(start, end)]);
      from = 0;
      to = data.length;
      this.#held = null;
    }
    const rest = this.#events(data, from, to, emit);
    if (rest === to) return;
    if (this.#overlong || to - rest > HELD_MAX_BYTES) {
      this.#overlong = true;
      emit(data, rest, to);
    } else {
      this.#held = Buffer.from(data.subarray(rest, to));
    }
  }

  /** The stream has ended: what is held was no complete event. */
  finish(emit: Emit): void {
    if (this.#held !== null) emit(this.#held, 0, this.#held.length);
    this.#held = null;
  }

  /** Passes on all complete events but a usage chunk; returns where the incomplete one begins. */
  #events(data: Buffer, from: number, to: number, emit: Emit): number {
    let passed = from;
    let eventStart = from;
    let lineStart = from;
    let emptyArray = false;
    for (let i = from; i < to; i++) {
      const byte = data[i];
      if (byte === CLOSE) {
        // `[]`, or `[ ]` from a serialiser that likes blanks.
        if (data[i - 1] === OPEN || (data[i - 1] === 32 && data[i - 2] === OPEN)) emptyArray = true;
      } else if (byte === LF) {
        const blank = i === lineStart || (i === lineStart + 1 && data[lineStart] === CR);
        lineStart = i + 1;
        if (!blank) continue;
        if (emptyArray && !this.#overlong && isUsageChunk(data.toString("utf8", eventStart, i))) {
          if (eventStart > passed) emit(data, passed, eventStart);
          passed = i + 1;
        }
        this.#overlong = false;
        emptyArray = false;
        eventStart = i + 1;
      }
    }
    if (eventStart > passed) emit(data, passed, eventStart);
    return eventStart;
  }
}

function isUsageChunk(event: string): boolean {
  const payload = /^data: ?(.*?)\r?$/mu.exec(event)?.[1];
  if (payload === undefined) return false;
  try {
    const chunk = JSON.parse(payload) as { choices?: unknown; usage?: unknown } | null;
    return (
      Array.isArray(chunk?.choices) &&
      chunk.choices.length === 0 &&
      typeof chunk.usage === "object" &&
      chunk.usage !== null
    );
  } catch {
    return false;
  }
}
