import type { EngineEndpoint, EngineKind } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { KvEventAddress } from "#src/engines/events/stream/sockets.ts";
import type { ScrapeResult } from "#src/engines/vocabulary.ts";

/** All that was seen of one endpoint. Checks only read this; they ask nothing. */
export type Sighting =
  | { readonly kind: "unreachable"; readonly endpoint: EngineEndpoint; readonly why: string }
  | { readonly kind: "unknown"; readonly endpoint: EngineEndpoint }
  | SeenEngine;

export interface SeenEngine {
  readonly kind: "seen";
  readonly endpoint: EngineEndpoint;
  readonly profile: EngineProfile;
  /** What its health route says, or why it said nothing. */
  readonly health: "ready" | "loading" | "unready" | "silent";
  /** Null: it could not be had, and why. */
  readonly scrape: ScrapeResult | null;
  readonly scrapeFailure: string | null;
  /** By fact: names under which it was looked for. */
  readonly lookedFor: Readonly<Record<string, readonly string[]>>;
  /** `--prefix-caching-hash-algo`, where the engine tells. */
  readonly hashAlgorithm: string | null;
  readonly clock: ClockReading;
  readonly events: EventReading;
  readonly tokens: TokenReading;
  /** Null: no probe was wanted, or none was possible. */
  readonly probe: ProbeReading | null;
}

/** How far the engine's clock is ahead of ours, each as far as it could be told. Behind: negative. */
export interface ClockReading {
  /** By the `Date` of an answer, which has whole seconds: what exceeds its rounding and the answer's way. */
  readonly dateAheadMs: number | null;
  /** It says that it will start so much later than now. */
  readonly startsInMs: number | null;
}

export type EventReading =
  /** The engine has none. */
  | { readonly kind: "none" }
  /** Not configured, or the engine says that it publishes none. */
  | { readonly kind: "off"; readonly why: string }
  /** Only one can have them, which is to be the router: TensorRT-LLM's that are pulled, or sent to an address it binds. */
  | { readonly kind: "exclusive" }
  | { readonly kind: "published"; readonly ranks: readonly RankReading[] };

export interface RankReading {
  readonly rank: number;
  readonly address: KvEventAddress | null;
  /** Null: it is there. */
  readonly unreachable: string | null;
  /** Null: it answers, or there is none to ask. */
  readonly replayFailure: string | null;
}

/** Two fixed prompts, a text and a chat, as tokens. */
export interface TokenReading {
  readonly model: string | null;
  /** What the engine makes of them; null: it has no route for that, or refuses. */
  readonly prompt: readonly number[] | null;
  readonly chat: readonly number[] | null;
  readonly own: OwnTokens;
}

/** What this side makes of the same prompts. */
export type OwnTokens =
  /** No tokenizer is configured for the model. */
  | { readonly kind: "none" }
  | { readonly kind: "unusable"; readonly why: string }
  | { readonly kind: "read"; readonly prompt: readonly number[]; readonly chat: readonly number[] | { why: string } };

/** A tiny completion, asked for twice. */
export interface ProbeReading {
  readonly model: string;
  /** Null: both were answered. */
  readonly failure: string | null;
  readonly promptTokens: number | null;
  /** Of the second; null: not told. */
  readonly cachedTokens: number | null;
  /** What the engine published of it; null: it was not to be expected. */
  readonly event: ProbeEvent | "missing" | "unreadable" | null;
}

export interface ProbeEvent {
  readonly blockTokens: number;
  /** The engine's own hash of the prompt's first block. */
  readonly firstHash: bigint;
  readonly aheadMs: number;
}

export function isSeen(sighting: Sighting): sighting is SeenEngine {
  return sighting.kind === "seen";
}

export function kindOf(sighting: Sighting): EngineKind | undefined {
  return isSeen(sighting) ? sighting.profile.kind : (sighting.endpoint.engine ?? undefined);
}
