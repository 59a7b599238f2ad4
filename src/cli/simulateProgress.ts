import type { World } from "#src/simulator/world/world.ts";

/** Not more often than this on a screen. */
const REDRAW_MS = 200;
const BAR_WIDTH = 24;

/** Shows on standard error how far a comparison is: a bar that moves on a terminal, else a line for each run. */
export class SimulateProgress {
  readonly #out: NodeJS.WriteStream;
  #drawnMs = 0;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  /** `world` is null when a run begins. */
  show(done: number, runs: number, label: string, world: World | null): void {
    if (!this.#out.isTTY) {
      if (world === null) this.#out.write(`run ${done + 1} of ${runs}: ${label}\n`);
      return;
    }
    const nowMs = performance.now();
    if (world !== null && nowMs - this.#drawnMs < REDRAW_MS) return;
    this.#drawnMs = nowMs;
    const arrived = world === null ? 0 : world.records.length - world.inFlight;
    const share = world === null ? 0 : Math.min(1, arrived / world.workload.expected);
    const filled = Math.floor(((done + share) / runs) * BAR_WIDTH);
    const bar = "█".repeat(filled).padEnd(BAR_WIDTH, "░");
    this.#out.write(`\r\u001b[K${bar} run ${done + 1} of ${runs}: ${label}, ${(100 * share).toFixed(0)}%`);
  }

  end(): void {
    if (this.#out.isTTY) this.#out.write("\r\u001b[K");
  }
}
