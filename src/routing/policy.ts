import type { Random } from "#src/determinism/random.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { PricedReplica } from "./pricedReplica.ts";
import type { PriceSettings } from "./priceSettings.ts";
import type { PriceTable } from "./priceTable.ts";

/** What a request's class is promised, and what missing it is worth against other classes. */
export interface ClassTargets {
  readonly ttftTargetMs: number;
  readonly tpotTargetMs: number;
  readonly weight: number;
}

/** One choice to make. Arrays run parallel to `candidates` (they may be longer) and are only read. */
export interface ChoiceInput {
  readonly request: RouteRequest;
  /** Eligible replicas; never empty. Eligibility is the caller's, order is the policy's. */
  readonly candidates: readonly PricedReplica[];
  /** Leading prompt tokens in GPU memory. */
  readonly cachedTokens: ArrayLike<number>;
  /** Leading prompt tokens in GPU or host memory, so never fewer than `cachedTokens`; null: no such tier is known of. */
  readonly hostTokens: ArrayLike<number> | null;
  /** The same with disk. */
  readonly diskTokens: ArrayLike<number> | null;
  /** Tokens that the replica's cache holds of all prompts together; null: not known. */
  readonly heldTokens: ArrayLike<number> | null;
  /** Predicted time that the request waits in the router for the replica before it is sent; null: it is sent at once. */
  readonly lineMs: ArrayLike<number> | null;
  /** Of each sequence. */
  readonly expectedOutputTokens: number;
  readonly nowMs: number;
  readonly random: Random;
  /** Null: the request's class promises nothing. */
  readonly classTargets: ClassTargets | null;
}

/** One choice made. It belongs to the policy and is valid until that chooses again: a `Decision` copies it. */
export interface Choice {
  /** Into `candidates`. */
  readonly index: number;
  /** Which way through the policy led here, e.g. `cheapest`, `overflow`. Metric label value. */
  readonly branch: string;
  /** How many candidates were equally good; one of them was drawn. */
  readonly tied: number;
  /** What the random source gave (0..1), if it was asked; else NaN. */
  readonly draw: number;
  /** The policy's own figure per candidate, in its own unit; null where it has none. May be longer than the pool. */
  readonly scores: Float64Array | null;
  /** Which end of `scores` the policy seeks. */
  readonly best: "lowest" | "highest";
  /** Prices in milliseconds, where the policy goes by price. */
  readonly prices: PriceTable | null;
}

/** How to choose among replicas. May keep state (a cursor, a tally), bounded, and never uses ambient time or chance. */
export interface Policy {
  readonly name: string;
  /** Of a policy that goes by price: pairs compete with its choice. Absent: they serve only what nobody serves alone. */
  readonly priceSettings?: PriceSettings;
  /**
   * Its choice counts `lineMs`, has prices, and changes nothing: a request may wait for what it would choose, and be
   * chosen for again. Others are asked only once there is room.
   */
  readonly bindsLate?: boolean;
  choose(input: ChoiceInput): Choice;
}
