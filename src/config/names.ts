/** Policies that `routing` offers; a test holds the two lists together, as this room lies below that one. */
export const POLICY_NAMES = [
  "kvasir",
  "round-robin",
  "random",
  "least-connections",
  "power-of-two",
  "session",
  "prefix-hash",
  "prefix-scorer",
  "tree-match",
  "dynamo-cost",
  "lmetric",
] as const;

/** Classes that exist without being configured; a test compares them with the scheduler's. */
export const PREDEFINED_CLASS_NAMES: readonly string[] = ["interactive", "standard", "batch"];

/** What each of these is guaranteed. */
export const PREDEFINED_GUARANTEED_SHARE = 0.05;
