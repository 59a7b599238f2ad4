import type { EngineEndpoint } from "../discovery/replicaSpec.ts";
import type { RouterError } from "../errors/routerError.ts";
import type { EngineProfile } from "./engineAdapter.ts";
import type { ScrapeResult, ServedModel } from "./vocabulary.ts";

/**
 * What the health route says. `silent`: it took the question and gave no answer in time, which a busy engine does in a
 * long prefill, so it is no death by itself. `unreachable`: refused, no route, no such name.
 */
export type EngineHealth = "ready" | "loading" | "unready" | "silent" | "unreachable";

/** A fact that an engine should publish and does not, with the names under which it was looked for. */
export interface MissingFact {
  readonly fact: string;
  readonly lookedFor: readonly string[];
}

/** Told what the monitor sees. Every call is synchronous; times are on the monitor's clock. */
export interface MonitorListener {
  /** Which engine it is and what it serves: at first, and after each restart or return. */
  identified(endpoint: EngineEndpoint, profile: EngineProfile, nowMs: number): void;
  /** Not known yet, and why; probing goes on. */
  unidentified(endpoint: EngineEndpoint, why: string, nowMs: number): void;
  health(endpoint: EngineEndpoint, health: EngineHealth, nowMs: number): void;
  metrics(endpoint: EngineEndpoint, scrape: ScrapeResult, nowMs: number): void;
  scrapeFailed(endpoint: EngineEndpoint, cause: RouterError, nowMs: number): void;
  models(endpoint: EngineEndpoint, models: readonly ServedModel[], nowMs: number): void;
  /** The list could not be read; the last one stays. */
  modelsFailed(endpoint: EngineEndpoint, cause: RouterError, nowMs: number): void;
  /** The set of missing facts changed; empty when all are back. */
  missing(endpoint: EngineEndpoint, facts: readonly MissingFact[], nowMs: number): void;
  /** A new process answers at the same address. Comes before anything else of the new incarnation. */
  restarted(endpoint: EngineEndpoint, nowMs: number): void;
}
