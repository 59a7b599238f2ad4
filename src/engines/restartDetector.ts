import type { EngineMetrics, ScrapeResult } from "./vocabulary.ts";

/** Python reads the start time once, but some exporters compute it anew and wobble by a fraction of a second. */
const START_TOLERANCE_SECONDS = 1;

const COUNTERS = [
  "prefixQueriedTokensTotal",
  "prefixHitTokensTotal",
  "preemptionsTotal",
  "promptTokensTotal",
  "generatedTokensTotal",
  "draftTokensTotal",
  "acceptedDraftTokensTotal",
] as const satisfies readonly (keyof EngineMetrics)[];

/** Tells from two scrapes whether the same process gave them: by its start time, and by counters that went back. */
export class RestartDetector {
  #startedAtSeconds: number | null = null;
  #counters = new Map<string, number>();

  /**
   * `wasGone`: connections were refused since the last scrape. Where neither start time nor counters can tell, that
   * counts as a restart, since believing in a cache that died is worse than forgetting one that lives.
   */
  observe(scrape: ScrapeResult, wasGone: boolean): boolean {
    const startedAtSeconds = scrape.startedAtSeconds ?? null;
    const counters = readCounters(scrape);
    const wentBack = this.#wentBack(counters);
    const startedLater = this.#startedLater(startedAtSeconds);
    const restarted = wentBack === true || (startedLater ?? wentBack ?? wasGone);
    if (restarted) this.#counters.clear();
    this.#startedAtSeconds = startedAtSeconds ?? (restarted ? null : this.#startedAtSeconds);
    for (const [key, value] of counters) this.#counters.set(key, value);
    return restarted;
  }

  /** Null: not told, now or before. */
  #startedLater(startedAtSeconds: number | null): boolean | null {
    if (startedAtSeconds === null || this.#startedAtSeconds === null) return null;
    return startedAtSeconds > this.#startedAtSeconds + START_TOLERANCE_SECONDS;
  }

  /** Null: nothing to compare, or only counters that had not yet moved. */
  #wentBack(counters: ReadonlyMap<string, number>): boolean | null {
    let comparable = false;
    for (const [key, value] of counters) {
      const before = this.#counters.get(key);
      if (before === undefined || before === 0) continue;
      if (value < before) return true;
      comparable = true;
    }
    return comparable ? false : null;
  }
}

function readCounters(scrape: ScrapeResult): ReadonlyMap<string, number> {
  const counters = new Map<string, number>();
  for (const [rank, metrics] of scrape.byRank) {
    for (const name of COUNTERS) {
      const value = metrics[name];
      if (value !== null) counters.set(`${rank} ${name}`, value);
    }
  }
  return counters;
}
