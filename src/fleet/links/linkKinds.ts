import type { SharedLevel } from "../topology.ts";

/** Whose port a transfer takes: all transfers that leave (or enter) the same one share its bandwidth. */
export type SharedBy = "replica" | "host" | "rack" | "zone";

/** What a link between two replicas is like, by the closest thing they share. */
export interface LinkKind {
  readonly gigabytesPerSecond: number;
  /** From the end of the prefill to the first byte moved: the hand-off's own round trips included. */
  readonly latencyMs: number;
  readonly sharedBy: SharedBy;
}

export type LinkKinds = Readonly<Record<SharedLevel, LinkKind>>;

/**
 * Where nobody configured anything and nothing was observed: NVLink 4 at about half of its 450 GB/s a direction; PCIe 5 or
 * shared memory within a host; a 200 Gb/s adapter per host within a rack; uplinks of 100 Gb/s per rack within a zone; and
 * for replicas of which nothing is known, 25 Gb/s Ethernet per host.
 */
export const LINK_KINDS: LinkKinds = {
  nvlink: { gigabytesPerSecond: 200, latencyMs: 1, sharedBy: "replica" },
  host: { gigabytesPerSecond: 40, latencyMs: 1, sharedBy: "host" },
  rack: { gigabytesPerSecond: 25, latencyMs: 2, sharedBy: "host" },
  zone: { gigabytesPerSecond: 12.5, latencyMs: 3, sharedBy: "rack" },
  none: { gigabytesPerSecond: 3, latencyMs: 5, sharedBy: "host" },
};

const BYTES_PER_GB = 1e9;

export function bytesPerMs({ gigabytesPerSecond }: LinkKind): number {
  return (gigabytesPerSecond * BYTES_PER_GB) / 1000;
}
