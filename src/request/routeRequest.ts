import type { HandoffName } from "#src/discovery/replicaSpec.ts";
import type { Identity } from "./identity.ts";

/** What the scheduler needs to know of a request. Small, and never the body: it may cross threads. */
export interface RouteRequest {
  /** Minted by the router; unique; no id is a prefix of another (all have one length). */
  readonly id: string;
  /** Pool: the model name as the fleet serves it, after aliases. An adapter's base where `adapter` is set. */
  readonly model: string;
  readonly adapter: string | null;
  readonly identity: Identity;
  /** `max_tokens` and its siblings; null: the engine's default. */
  readonly maxOutputTokens: number | null;
  /** Sequences asked for (`n`, or number of prompts); each takes a batch slot. */
  readonly sequences: number;
  /** Session for affinity policies (header or `user`), or null. */
  readonly session: string | null;
  /** Who shares with whom: API key name, or "anonymous". */
  readonly tenant: string;
  readonly className: string;
  readonly arrivedMs: number;
  /** On the scheduler's clock; past it nobody waits for the answer. */
  readonly deadlineMs: number;
  readonly bodyBytes: number;
  /** False for embeddings, scores and the like: prefill only, no decode. */
  readonly generates: boolean;
  /** Ways of handing over by which it can be split into a prefill and a decode leg. Absent: nobody asked. */
  readonly handoffs?: readonly HandoffName[];
  /** Why the other ways, or any, are not for it. Absent: nobody asked, or nothing stands in the way. */
  readonly unsplit?: string;
}
