import type { KvTier } from "../kvEvent.ts";
import { NameTable } from "./nameTable.ts";

/** What the engines and their connectors call the places of a block, in lower case. */
const TIERS: Readonly<Record<string, KvTier>> = {
  gpu: "gpu",
  cpu: "host",
  cpu_pinned: "host",
  storage: "disk",
  disk: "disk",
  external: "remote",
};

const USUAL_NAMES = new NameTable<KvTier>(
  Object.fromEntries(Object.entries(TIERS).map(([name, tier]) => [name.toUpperCase(), tier])),
);

export { USUAL_NAMES as TIER_NAMES };

/** The tier of any spelling; an unknown medium is the farthest. */
export function tierOf(medium: string): KvTier {
  return TIERS[medium.toLowerCase()] ?? "remote";
}
