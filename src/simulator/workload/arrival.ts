import type { Content } from "./content.ts";

/** One request as a workload makes it. */
export interface Arrival {
  readonly atMs: number;
  readonly content: Content;
  readonly promptTokens: number;
  /** Exactly so many are generated; the router is not told. */
  readonly outputTokens: number;
  /** Identity of the answer, which a later prompt of the same conversation may contain. */
  readonly answerId: number;
  /** Conversation, or null. */
  readonly session: string | null;
  readonly tenant: string;
  readonly className: string;
  readonly adapter: string | null;
}

/** Where requests come from: by themselves, or because earlier ones ended. Made anew for each run. */
export interface Workload {
  /** How many requests there will be, as far as is known. */
  readonly expected: number;
  /** The next request that comes by itself, in order of time; null: no further one. */
  next(): Arrival | null;
  /** Requests that follow from the end of an earlier one; not before `nowMs`. */
  ended(arrival: Arrival, answered: boolean, nowMs: number): readonly Arrival[];
}
