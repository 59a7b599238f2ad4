import type { EngineEndpoint } from "./replicaSpec.ts";
import type { Source, SourceListener } from "./source.ts";

/** The list in the configuration. A reloaded configuration replaces it with `set`. */
export class StaticSource implements Source {
  readonly name: string;
  #endpoints: readonly EngineEndpoint[];
  #listener: SourceListener | null = null;

  constructor(name: string, endpoints: readonly EngineEndpoint[]) {
    this.name = name;
    this.#endpoints = endpoints;
  }

  set(endpoints: readonly EngineEndpoint[]): void {
    this.#endpoints = endpoints;
    this.#listener?.endpoints(this.name, endpoints);
  }

  start(listener: SourceListener): Promise<void> {
    this.#listener = listener;
    listener.endpoints(this.name, this.#endpoints);
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.#listener = null;
    return Promise.resolve();
  }
}
