import { request } from "undici";
import { z } from "zod";
import type { Tally } from "./tally.ts";
import type { ReplicaLine } from "./screen.ts";

const Status = z.object({
  queue: z.object({ requests: z.number() }),
  replicas: z.array(
    z.object({
      replica: z.string(),
      state: z.string(),
      reservedRequests: z.number(),
      kvUsage: z.number().nullable(),
      pendingPrefillTokens: z.number(),
    }),
  ),
});

export interface FleetStatus {
  readonly queued: number;
  readonly replicas: readonly ReplicaLine[];
}

/** What the router says of its fleet, asked for as an operator would. */
export async function readFleetStatus(adminUrl: string, tally: Tally): Promise<FleetStatus> {
  const { body } = await request(`${adminUrl}/status`);
  const { queue, replicas } = Status.parse(await body.json());
  return {
    queued: queue.requests,
    replicas: replicas.map(({ replica, state, reservedRequests, kvUsage, pendingPrefillTokens }) => ({
      name: replica,
      state,
      requests: reservedRequests,
      kvUsage,
      pendingPrefillTokens,
      answered: tally.answeredBy(replica),
    })),
  };
}
