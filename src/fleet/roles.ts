import type { Handoff } from "#src/engines/handoff/handoff.ts";
import { handoffOf } from "#src/engines/handoffs.ts";
import type { Fleet } from "./fleet.ts";
import type { Replica } from "./replica.ts";

/** How KV gets from or to this replica; null: its engine is not known yet, or cannot hand over so. */
export function handoffOfReplica({ profile, endpoint }: Replica): Handoff | null {
  return profile === null ? null : handoffOf(profile.kind, endpoint.handoff?.protocol ?? null);
}

/** Whether its role lets it serve a whole request by itself. */
export function servesWhole(replica: Replica, generates: boolean): boolean {
  const { role } = replica.endpoint;
  return role === "mixed" || (handoffOfReplica(replica)?.servesWhole(role, generates) ?? false);
}

/** Which leg of a pair its role lets it take. */
export function legOf({ endpoint: { role } }: Replica): "prefill" | "decode" | null {
  return role === "prefill" || role === "decode" ? role : null;
}

/** Hand-offs for which a pool has both sides, whatever their state. */
export function handoffsOf(pool: readonly Replica[]): readonly Handoff[] {
  const sides = new Map<Handoff, Set<string>>();
  for (const replica of pool) {
    const leg = legOf(replica);
    const handoff = leg === null ? null : handoffOfReplica(replica);
    if (leg === null || handoff === null) continue;
    const known = sides.get(handoff) ?? new Set();
    sides.set(handoff, known.add(leg));
  }
  return [...sides].flatMap(([handoff, legs]) => (legs.size === 2 ? [handoff] : []));
}

/** Whether a pool can serve requests at all, were all its replicas well. An empty one cannot. */
export function canServe(pool: readonly Replica[]): boolean {
  return pool.some((replica) => servesWhole(replica, true)) || handoffsOf(pool).length > 0;
}

/** Models whose replicas are there but cannot serve a request, as `qwen (prefill, prefill)`. */
export function modelsWithoutServer(fleet: Fleet): readonly string[] {
  return fleet
    .models()
    .filter(({ id, parent }) => parent === null && !canServe(fleet.pool(id)))
    .map(({ id }) => `${id} (${[...new Set(fleet.pool(id).map(({ endpoint }) => endpoint.role))].join(", ")})`);
}

export function reportRoles(fleet: Fleet, nowMs: number): void {
  const models = modelsWithoutServer(fleet);
  if (models.length === 0) fleet.conditions.clear("role_not_serving", null);
  else {
    const message = `No replica serves requests by itself, and no two as a pair, for ${models.join(", ")}.`;
    fleet.conditions.raise("role_not_serving", null, message, nowMs);
  }
}
