import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { KnownEngine } from "../format/records.ts";

type Changeable = { -readonly [Key in keyof KnownEngine]: KnownEngine[Key] };

/** The last news of each engine, for a section to begin with. Bounded by the engines that discovery names. */
export class KnownFleet {
  readonly #endpoints = new Map<string, readonly EngineEndpoint[]>();
  readonly #engines = new Map<string, Changeable>();

  get endpoints(): readonly (readonly [string, readonly EngineEndpoint[]])[] {
    return [...this.#endpoints];
  }

  get engines(): readonly KnownEngine[] {
    return [...this.#engines.values()];
  }

  setEndpoints(source: string, endpoints: readonly EngineEndpoint[]): void {
    this.#endpoints.set(source, endpoints);
    const named = new Set([...this.#endpoints.values()].flat().map(({ name }) => name));
    for (const name of this.#engines.keys()) if (!named.has(name)) this.#engines.delete(name);
    for (const name of named)
      if (!this.#engines.has(name)) this.#engines.set(name, { name, profile: null, health: null, scrape: null });
  }

  engine(name: string): Changeable | undefined {
    return this.#engines.get(name);
  }

  restarted(name: string): void {
    const engine = this.#engines.get(name);
    if (engine === undefined) return;
    engine.health = null;
    engine.scrape = null;
  }
}
