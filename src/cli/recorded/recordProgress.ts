/** Not more often than this on a screen. */
const REDRAW_MS = 200;

/** Shows on standard error how many records of a recording were read, on a terminal only. */
export class RecordProgress {
  readonly #out: NodeJS.WriteStream;
  #drawnMs = 0;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  show(records: number): void {
    const nowMs = performance.now();
    if (!this.#out.isTTY || nowMs - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = nowMs;
    this.#out.write(`\r\u001b[K${records} records read`);
  }

  end(): void {
    if (this.#out.isTTY) this.#out.write("\r\u001b[K");
  }
}
