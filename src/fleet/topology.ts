import type { ReplicaLabels } from "#src/discovery/replicaSpec.ts";

/** The closest thing two replicas share, nearest first. `none`: nothing known, so the slowest link is assumed. */
export type SharedLevel = "nvlink" | "host" | "rack" | "zone" | "none";

/** An nvlink domain may span hosts, so it is asked first: it is the faster link wherever it exists. */
export function sharing(a: ReplicaLabels, b: ReplicaLabels): SharedLevel {
  if (a.nvlinkDomain !== undefined && a.nvlinkDomain === b.nvlinkDomain) return "nvlink";
  if (a.host !== undefined && a.host === b.host) return "host";
  if (a.rack !== undefined && a.rack === b.rack) return "rack";
  if (a.zone !== undefined && a.zone === b.zone) return "zone";
  return "none";
}
