import type { Handoff } from "#src/engines/handoff/handoff.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { isLastResort, obstacle } from "./eligibility.ts";
import type { Replica } from "./replica.ts";
import { handoffOfReplica, legOf } from "./roles.ts";

/** Replicas that understand each other's hand-off; both sides have somebody. */
export interface LegPool {
  readonly handoff: Handoff;
  readonly prefill: readonly Replica[];
  readonly decode: readonly Replica[];
}

const NONE: readonly LegPool[] = [];

/** @param lastResort also those that are quarantined or seem unreachable */
export function legCandidates(
  request: RouteRequest,
  pool: readonly Replica[],
  excluded: ReadonlySet<string>,
  lastResort: boolean,
  nowMs: number,
): readonly LegPool[] {
  const wanted = request.handoffs ?? [];
  if (wanted.length === 0) return NONE;
  const pools = new Map<Handoff, { prefill: Replica[]; decode: Replica[] }>();
  for (const replica of pool) {
    const leg = legOf(replica);
    if (leg === null) continue;
    const handoff = handoffOfReplica(replica);
    if (handoff === null || !wanted.includes(handoff.name)) continue;
    const reason = obstacle(request, replica, excluded, nowMs);
    if (reason !== null && !(lastResort && isLastResort(reason))) continue;
    let sides = pools.get(handoff);
    if (sides === undefined) pools.set(handoff, (sides = { prefill: [], decode: [] }));
    sides[leg].push(replica);
  }
  return [...pools].flatMap(([handoff, sides]) =>
    sides.prefill.length > 0 && sides.decode.length > 0 ? [{ handoff, ...sides }] : [],
  );
}
