import type { EngineEndpoint } from "./replicaSpec.ts";

/** Told of each complete set of endpoints that a source sees. A failed look-up keeps the last set and reports why. */
export interface SourceListener {
  endpoints(source: string, endpoints: readonly EngineEndpoint[]): void;
  failed(source: string, cause: Error): void;
}

/** Where endpoints come from: the configured list, a watched file, DNS, the admin API. */
export interface Source {
  readonly name: string;
  /** Resolves after the first set was delivered or failed; later sets arrive through the listener. */
  start(listener: SourceListener): Promise<void>;
  stop(): Promise<void>;
}
