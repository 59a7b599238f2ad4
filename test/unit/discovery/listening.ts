import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { SourceListener } from "#src/discovery/source.ts";

/** Keeps what a source told. */
export interface Listening extends SourceListener {
  readonly sets: (readonly EngineEndpoint[])[];
  readonly failures: Error[];
  /** URLs of the last set. */
  urls(): string[];
}

export function listening(): Listening {
  const sets: (readonly EngineEndpoint[])[] = [];
  const failures: Error[] = [];
  return {
    sets,
    failures,
    endpoints: (_, endpoints) => void sets.push(endpoints),
    failed: (_, cause) => void failures.push(cause),
    urls: () => sets.at(-1)?.map((endpoint) => endpoint.url) ?? [],
  };
}
