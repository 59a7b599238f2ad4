import type { Replica } from "#src/fleet/replica.ts";

/** Predicted time that a request waits in the router for a replica. */
export type LineMs = (replica: Replica, cachedTokens: number) => number;
