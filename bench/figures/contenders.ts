/** A router as `kvasir simulate --policy` takes it, and the options that are tried for it. */
export interface Contender {
  readonly name: string;
  /** The first are its authors' values. */
  readonly variants: readonly string[];
}

export const KVASIR = "kvasir";

/** Parts of Kvasir taken away: the queue; and what a queue alone gives another policy. */
export const ABLATIONS = ["kvasir@immediate", "lmetric@queued"] as const;

/**
 * The options that move each baseline most, around the values that its authors give. Kvasir itself is taken with its
 * defaults everywhere, which are the same for all cases; each baseline gets the best found for the case's kind.
 */
export const BASELINES: readonly Contender[] = [
  { name: "lmetric", variants: ["lmetric", "lmetric:queuedPrefill=0"] },
  { name: "dynamo-cost", variants: ["dynamo-cost", ...[0.5, 2, 4, 8].map((w) => `dynamo-cost:overlapWeight=${w}`)] },
  {
    name: "prefix-scorer",
    variants: [
      "prefix-scorer",
      "prefix-scorer:queueWeight=2;kvWeight=2;prefixWeight=1.5",
      "prefix-scorer:queueWeight=2;kvWeight=2;prefixWeight=6",
      "prefix-scorer:queueWeight=4;kvWeight=1;prefixWeight=3",
      "prefix-scorer:queueWeight=1;kvWeight=4;prefixWeight=3",
    ],
  },
  {
    name: "tree-match",
    variants: [
      "tree-match",
      "tree-match:balanceAbsThreshold=16",
      "tree-match:balanceAbsThreshold=4;balanceRelThreshold=1.1",
      "tree-match:cacheThreshold=0.5;balanceAbsThreshold=4;balanceRelThreshold=1.1",
      "tree-match:cacheThreshold=0.5;balanceAbsThreshold=16",
    ],
  },
  {
    name: "prefix-hash",
    variants: [
      "prefix-hash",
      "prefix-hash:loadFactor=1.1",
      "prefix-hash:prefixTokens=2048",
      "prefix-hash:prefixTokens=2048;loadFactor=1.1",
    ],
  },
  { name: "session", variants: ["session", "session:loadFactor=1.2"] },
  { name: "least-connections", variants: ["least-connections"] },
  { name: "power-of-two", variants: ["power-of-two"] },
  { name: "round-robin", variants: ["round-robin"] },
];
