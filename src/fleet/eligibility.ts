import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Replica } from "./replica.ts";
import { servesWhole } from "./roles.ts";

/** Why a replica of the pool cannot have a request. Label values of metrics and of explained decisions. */
export type IneligibleReason =
  | "excluded"
  | "probing"
  | "loading"
  | "unreachable"
  | "quarantined"
  | "trial_under_way"
  | "draining"
  | "asleep"
  | "role"
  | "adapter_unknown"
  | "context_too_long";

export interface Ineligible {
  readonly replicaId: string;
  readonly reason: IneligibleReason;
}

export interface Eligibility {
  /** Can serve the request; whether a slot is free is `replica.hasRoom`. */
  readonly candidates: readonly Replica[];
  readonly ineligible: readonly Ineligible[];
  /**
   * `last_resort`: every replica that could serve it is quarantined or seems unreachable, and trying is better than
   * refusing. `unknown_model`: no replica of the fleet has this model or adapter. `none`: nobody can take it now.
   */
  readonly branch: "normal" | "last_resort" | "none" | "unknown_model";
}

const NOBODY: readonly Replica[] = [];

/** Why a replica cannot have a request, or a leg of it, whatever its role; null: it can. */
export function obstacle(
  request: RouteRequest,
  replica: Replica,
  excluded: ReadonlySet<string>,
  nowMs: number,
): IneligibleReason | null {
  // First, because it decides between "not found" and "not now".
  if (request.adapter !== null && !replica.adapters.canServe(request.adapter)) return "adapter_unknown";
  if (excluded.size > 0 && excluded.has(replica.id)) return "excluded";
  const longest = replica.maxModelTokens.get(request.model);
  if (longest !== undefined && !request.identity.approximate && request.identity.promptTokens > longest)
    return "context_too_long";
  if (replica.metrics?.value.asleep === true) return "asleep";
  if (replica.health.routable(nowMs)) return null;
  const { state } = replica.lifecycle;
  if (state === "half_open") return "trial_under_way";
  return state === "ready" ? null : state;
}

/** Better tried than nobody. */
export function isLastResort(reason: IneligibleReason): boolean {
  return reason === "quarantined" || reason === "trial_under_way" || reason === "unreachable";
}

/** Which replicas of a pool can serve a request at all, and why the others cannot. */
export function eligibility(
  request: RouteRequest,
  pool: readonly Replica[],
  excluded: ReadonlySet<string>,
  nowMs: number,
): Eligibility {
  const candidates: Replica[] = [];
  const ineligible: Ineligible[] = [];
  let known = false;
  for (const replica of pool) {
    let reason = obstacle(request, replica, excluded, nowMs);
    if (reason !== "adapter_unknown") known = true;
    if (reason !== "adapter_unknown" && reason !== "excluded" && !servesWhole(replica, request.generates))
      reason = "role";
    if (reason === null) candidates.push(replica);
    else ineligible.push({ replicaId: replica.id, reason });
  }
  if (candidates.length > 0) return { candidates, ineligible, branch: "normal" };
  if (!known) return { candidates: NOBODY, ineligible, branch: "unknown_model" };

  const lastResort = ineligible.filter(({ reason }) => isLastResort(reason)).map(({ replicaId }) => replicaId);
  if (lastResort.length === 0) return { candidates: NOBODY, ineligible, branch: "none" };
  return {
    candidates: pool.filter(({ id }) => lastResort.includes(id)),
    ineligible: ineligible.filter(({ replicaId }) => !lastResort.includes(replicaId)),
    branch: "last_resort",
  };
}
