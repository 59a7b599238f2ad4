import type { ChatResult } from "./player.ts";

const KEPT_RESULTS = 2_000;

/** What the demo's clients saw lately: the last results, bounded. */
export class Tally {
  readonly #recent: ChatResult[] = [];
  readonly #byReplica = new Map<string, number>();
  #oldest = 0;
  answered = 0;
  promptTokens = 0;
  cachedTokens = 0;
  outputTokens = 0;

  add(result: ChatResult): void {
    if (result.status !== 200) return;
    this.answered++;
    this.promptTokens += result.promptTokens;
    this.cachedTokens += result.cachedTokens;
    this.outputTokens += result.outputTokens;
    if (result.replica !== null) this.#byReplica.set(result.replica, this.answeredBy(result.replica) + 1);
    if (this.#recent.length < KEPT_RESULTS) {
      this.#recent.push(result);
    } else {
      this.#recent[this.#oldest] = result;
      this.#oldest = (this.#oldest + 1) % KEPT_RESULTS;
    }
  }

  answeredBy(replica: string): number {
    return this.#byReplica.get(replica) ?? 0;
  }

  /** Share of all prompt tokens that engines had cached, 0..1. */
  get cachedShare(): number {
    return this.promptTokens === 0 ? 0 : this.cachedTokens / this.promptTokens;
  }

  /** Time to first token over the kept results; null before the first. */
  ttftMs(quantile: number): number | null {
    const sorted = this.#recent.map((result) => result.ttftMs).toSorted((a, b) => a - b);
    return sorted[Math.floor(quantile * (sorted.length - 1))] ?? null;
  }
}
