import type { FactSources } from "./facts.ts";
import type { MissingFact } from "./monitorListener.ts";
import type { Fact, ScrapeResult } from "./vocabulary.ts";

/**
 * What one incarnation of an engine should publish and does not: what its kind always has, and what it itself had
 * before. Of the second sort are the facts of features (adapters, speculation), which nobody can expect from the start.
 */
export class MissingFacts {
  readonly #sources: FactSources;
  readonly #seen = new Set<Fact>();
  #missing: readonly string[] = [];

  constructor(sources: FactSources) {
    this.#sources = sources;
  }

  /** The facts missing after this scrape. */
  observe(scrape: ScrapeResult): readonly string[] {
    const missing = new Set(scrape.missing);
    for (const metrics of scrape.byRank.values()) {
      for (const fact of Object.keys(metrics) as Fact[]) {
        if (metrics[fact] !== null) this.#seen.add(fact);
        else if (this.#seen.has(fact)) missing.add(fact);
      }
    }
    return [...missing].sort();
  }

  /** The facts with the names looked for, if the set is another one than the last time. */
  changed(missing: readonly string[]): readonly MissingFact[] | null {
    if (missing.join() === this.#missing.join()) return null;
    this.#missing = missing;
    return missing.map((fact) => ({ fact, lookedFor: this.#sources[fact as Fact] ?? [] }));
  }
}
