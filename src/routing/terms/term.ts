/** The terms of the price, in the order of design and of every table's columns. All in milliseconds. */
export const TERMS = [
  "queue",
  "prefill",
  "restore",
  "transfer",
  "adapter",
  "decode",
  "interference",
  "eviction",
  "preemption",
  "lateness",
] as const;

export type TermName = (typeof TERMS)[number];

/** Where each term stands in a row of a table: its place in `TERMS`. */
export const COLUMN = {
  queue: 0,
  prefill: 1,
  restore: 2,
  transfer: 3,
  adapter: 4,
  decode: 5,
  interference: 6,
  eviction: 7,
  preemption: 8,
  lateness: 9,
} as const satisfies Record<TermName, number>;

/**
 * What a term's figure rests on, best first. `measured`: the ledger or a fresh scrape. `learned`: this replica's own
 * traffic. `prior`: a table or a documented constant. `stale`: facts too old to count on. `not_applicable`: the term
 * has no meaning for this request.
 */
export const BASES = ["measured", "learned", "prior", "stale", "not_applicable"] as const;

export type BasisName = (typeof BASES)[number];

/** Codes of `BASES`, for typed arrays: the larger of two codes is the worse basis. */
export const MEASURED = 0;
export const LEARNED = 1;
export const PRIOR = 2;
export const STALE = 3;
export const NOT_APPLICABLE = 4;
