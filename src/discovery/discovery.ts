import { isDeepStrictEqual } from "node:util";
import type { EngineEndpoint } from "./replicaSpec.ts";
import type { Source, SourceListener } from "./source.ts";

export interface DiscoveryListener {
  /** The whole set, in the order of the sources; only when it changed. */
  changed(endpoints: readonly EngineEndpoint[]): void;
  /** Everything that is wrong now, by source; only when it changed. Empty: all is well again. */
  problems(bySource: ReadonlyMap<string, string>): void;
}

export interface DiscoveryOptions {
  readonly sources: readonly Source[];
  readonly listener: DiscoveryListener;
  readonly maxEndpoints?: number;
}

/**
 * Joins what all sources see into one set. An address is one replica however many sources name it, and the source that
 * comes first says what it is called; a name that is taken already, and what exceeds the bound, are left out and reported.
 */
export class Discovery {
  readonly #sources: readonly Source[];
  readonly #listener: DiscoveryListener;
  readonly #maxEndpoints: number;
  readonly #bySource = new Map<string, readonly EngineEndpoint[]>();
  readonly #failures = new Map<string, string>();
  #endpoints: readonly EngineEndpoint[] = [];
  #problems: ReadonlyMap<string, string> = new Map();
  #stopped = false;

  constructor({ sources, listener, maxEndpoints = 1024 }: DiscoveryOptions) {
    this.#sources = sources;
    this.#listener = listener;
    this.#maxEndpoints = maxEndpoints;
    if (new Set(sources.map((source) => source.name)).size < sources.length) {
      throw new Error("two discovery sources have one name");
    }
  }

  get endpoints(): readonly EngineEndpoint[] {
    return this.#endpoints;
  }

  /** Resolves after each source has delivered or failed once. */
  async start(): Promise<void> {
    const toSources: SourceListener = {
      endpoints: (source, endpoints) => {
        this.#failures.delete(source);
        this.#bySource.set(source, endpoints);
        this.#join();
      },
      failed: (source, cause) => {
        this.#failures.set(source, cause.message);
        this.#join();
      },
    };
    await Promise.all(this.#sources.map((source) => source.start(toSources)));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#sources.map((source) => source.stop()));
  }

  #join(): void {
    if (this.#stopped) return;
    const byUrl = new Map<string, EngineEndpoint>();
    const urlByName = new Map<string, string>();
    const problems = new Map(this.#failures);
    for (const { name: source } of this.#sources) {
      const refused: string[] = [];
      for (const endpoint of this.#bySource.get(source) ?? []) {
        if (byUrl.has(endpoint.url)) continue;
        const taken = urlByName.get(endpoint.name);
        if (taken !== undefined) refused.push(`${endpoint.url} is called ${endpoint.name}, which is ${taken} already`);
        else if (byUrl.size >= this.#maxEndpoints)
          refused.push(`${endpoint.url} exceeds the bound of ${this.#maxEndpoints} engines`);
        else {
          byUrl.set(endpoint.url, endpoint);
          urlByName.set(endpoint.name, endpoint.url);
        }
      }
      const [first] = refused;
      if (first !== undefined) {
        const others = refused.length > 1 ? `, and ${refused.length - 1} more are left out` : "";
        problems.set(source, [problems.get(source), first + others].filter((each) => each !== undefined).join("; "));
      }
    }
    const endpoints = [...byUrl.values()];
    if (!isDeepStrictEqual(endpoints, this.#endpoints)) {
      this.#endpoints = endpoints;
      this.#listener.changed(endpoints);
    }
    if (!isDeepStrictEqual(problems, this.#problems)) {
      this.#problems = problems;
      this.#listener.problems(problems);
    }
  }
}
