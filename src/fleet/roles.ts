import type { Fleet } from "./fleet.ts";
import type { Replica } from "./replica.ts";

/** Whether a pool can serve requests at all, were all its replicas well. An empty one cannot. */
export function canServe(pool: readonly Replica[]): boolean {
  return pool.some(({ endpoint }) => endpoint.role === "mixed");
}

/** Models whose replicas are there but cannot serve a request, as `qwen (prefill, prefill, decode)`. */
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
    const message = `No replica serves requests by itself for ${models.join(", ")}.`;
    fleet.conditions.raise("role_not_serving", null, message, nowMs);
  }
}
