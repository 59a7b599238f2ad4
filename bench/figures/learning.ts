import type { Fleet } from "#src/fleet/fleet.ts";
import { prefillMs } from "#src/hardware/stepTimes.ts";
import type { EngineSetup } from "#src/simulator/world/runSettings.ts";

/** A prompt by which speeds are compared. */
const PROMPT_TOKENS = 4_000;
/** Known when the prediction is this near to the truth. */
const WITHIN = 0.25;

/** Watches when a router has found out how slow each slowed engine is. */
export class Learning {
  /** Since the start of the run, until all were known; NaN: no engine is slower than told, or it never was so far. */
  seconds = Number.NaN;
  readonly #slow: readonly EngineSetup[];

  constructor(engines: readonly EngineSetup[]) {
    this.#slow = engines.filter(({ slowFactor }) => slowFactor !== 1);
  }

  look(fleet: Fleet, nowMs: number): void {
    if (this.#slow.length === 0 || !Number.isNaN(this.seconds)) return;
    const known = this.#slow.every(({ name, core, slowFactor }) => {
      const truth = slowFactor * prefillMs(core.times, PROMPT_TOKENS, 0);
      const predicted = fleet.ofEndpoint(name)[0]!.latency.prefillMs(PROMPT_TOKENS, 0);
      return Math.abs(predicted / truth - 1) <= WITHIN;
    });
    if (known) this.seconds = nowMs / 1000;
  }
}
