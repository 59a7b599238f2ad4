import type { ConditionSnapshot } from "./snapshots.ts";

/** A condition as `/readyz` and the admin API show it. */
export interface ReportedCondition {
  readonly condition: string;
  readonly replica: string | null;
  readonly forSeconds: number;
  readonly message: string;
  readonly mend: string;
}

/** The oldest first: what has been wrong longest is most likely the cause. */
export function conditionReport(conditions: Iterable<ConditionSnapshot>, nowMs: number): readonly ReportedCondition[] {
  return [...conditions]
    .sort((a, b) => a.sinceMs - b.sinceMs)
    .map(({ key, replicaId, sinceMs, message, mend }) => ({
      condition: key,
      replica: replicaId,
      forSeconds: Math.round(Math.max(0, nowMs - sinceMs) / 100) / 10,
      message,
      mend,
    }));
}
