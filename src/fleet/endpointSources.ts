import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";

/** The endpoints that all sources see together, by name. The source that came first wins where two use one name. */
export class EndpointSources {
  readonly #bySource = new Map<string, readonly EngineEndpoint[]>();

  set(source: string, endpoints: readonly EngineEndpoint[]): void {
    this.#bySource.set(source, endpoints);
  }

  joined(): ReadonlyMap<string, EngineEndpoint> {
    const joined = new Map<string, EngineEndpoint>();
    for (const endpoints of this.#bySource.values())
      for (const endpoint of endpoints) if (!joined.has(endpoint.name)) joined.set(endpoint.name, endpoint);
    return joined;
  }
}

/** Whether both descriptions are of one and the same engine, so that what is known of it stays true. */
export function sameEngine(a: EngineEndpoint, b: EngineEndpoint): boolean {
  return a.url === b.url && a.engine === b.engine && a.prior === b.prior && a.dataParallelRanks === b.dataParallelRanks;
}
