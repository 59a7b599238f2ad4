import type { ConditionKey } from "./conditionGuide.ts";
import type { Conditions } from "./conditions.ts";
import type { Replica } from "./replica.ts";

/** Raises and clears what an operator must know of a replica's life. */
export function reportLifecycle(conditions: Conditions, replica: Replica, nowMs: number): void {
  const { id, lifecycle } = replica;
  const isOut = lifecycle.state === "quarantined" || lifecycle.state === "half_open";
  const why = isOut && lifecycle.cause === "busy" ? "refuses requests (429 or 503)" : "fails requests";
  hold(conditions, "replica_quarantined", id, isOut ? `${id} ${why}, and is tried now and then.` : null, nowMs);
  const isGone = lifecycle.state === "unreachable";
  const how = isGone && lifecycle.cause === "refused" ? "takes no connections" : "does not answer its health probes";
  hold(conditions, "replica_unreachable", id, isGone ? `${id} ${how}.` : null, nowMs);
}

/** The same of what it takes at a time. `caching`: whether it caches prefixes; null: not known. */
export function reportLimits(conditions: Conditions, replica: Replica, caching: boolean | null, nowMs: number): void {
  const { id } = replica;
  const { assumed } = replica.limits();
  hold(conditions, "prefix_caching_off", id, caching === false ? `${id} caches no prefixes.` : null, nowMs);
  const unknown = `${id} does not say how much it takes at a time: set ${assumed.join(" and ")} of this engine.`;
  hold(conditions, "limits_assumed", id, assumed.length > 0 ? unknown : null, nowMs);
}

/** Of what it does not publish. */
export function reportMissing(
  conditions: Conditions,
  { id }: Replica,
  missing: readonly string[],
  nowMs: number,
): void {
  hold(
    conditions,
    "metric_missing",
    id,
    missing.length > 0 ? `${id} does not publish ${missing.join(", ")}.` : null,
    nowMs,
  );
}

/** Raised with a message, cleared without. */
function hold(conditions: Conditions, key: ConditionKey, id: string, message: string | null, nowMs: number): void {
  if (message === null) conditions.clear(key, id);
  else conditions.raise(key, id, message, nowMs);
}
