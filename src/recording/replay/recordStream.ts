import type { RecordingRecord } from "../format/records.ts";

/** Records one by one, with a look at the next. */
export class RecordStream {
  readonly #records: Iterator<RecordingRecord>;
  #next: RecordingRecord | null;
  #taken = 0;

  constructor(records: Iterable<RecordingRecord>) {
    this.#records = records[Symbol.iterator]();
    this.#next = this.#read();
  }

  /** Records taken so far. */
  get taken(): number {
    return this.#taken;
  }

  /** Null: there is no further one. */
  get next(): RecordingRecord | null {
    return this.#next;
  }

  take(): RecordingRecord | null {
    const taken = this.#next;
    if (taken === null) return null;
    this.#taken++;
    this.#next = this.#read();
    return taken;
  }

  close(): void {
    this.#records.return?.();
    this.#next = null;
  }

  #read(): RecordingRecord | null {
    const next: IteratorResult<RecordingRecord, unknown> = this.#records.next();
    return next.done === true ? null : next.value;
  }
}
