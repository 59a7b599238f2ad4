import { RouterError } from "#src/errors/routerError.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { DecisionDigest } from "../format/decisionDigest.ts";
import type { RecordedDecision, Result } from "../format/records.ts";

/** Where a decision that was made again is not the recorded one. */
export interface Difference {
  /** Since the recording began. */
  readonly atMs: number;
  readonly what: string;
  readonly recorded: string;
  readonly made: string;
  /** What else differs. */
  readonly fields: readonly string[];
}

const digest = new DecisionDigest();

/** Null: they are equal to the last bit. */
export function compared(recorded: Result, made: Placement | RouterError, atMs: number): Difference | null {
  if (made instanceof RouterError) {
    const own = `refused with ${made.code}, retry after ${made.retryAfterMs} ms`;
    if (recorded.placed !== null) {
      const { rows, chosen } = recorded.decision;
      return {
        atMs,
        what: "placed or refused",
        recorded: `placed on ${rows[chosen]!.replicaId}`,
        made: own,
        fields: [],
      };
    }
    const { code, retryAfterMs } = recorded.refused;
    if (code === made.code && Object.is(retryAfterMs, made.retryAfterMs)) return null;
    return {
      atMs,
      what: "refusal",
      recorded: `refused with ${code}, retry after ${retryAfterMs} ms`,
      made: own,
      fields: [],
    };
  }
  const { decision } = made;
  if (recorded.placed === null) {
    const { code } = recorded.refused;
    return {
      atMs,
      what: "placed or refused",
      recorded: `refused with ${code}`,
      made: `placed on ${decision.replicaId}`,
      fields: [],
    };
  }
  const [low, high] = digest.of(decision);
  if (low === recorded.decision.digest[0] && high === recorded.decision.digest[1]) return null;
  return {
    atMs,
    what: `decision ${decision.id}`,
    recorded: `${recorded.decision.rows[recorded.decision.chosen]!.replicaId} by ${recorded.decision.policy}`,
    made: `${decision.replicaId} by ${decision.policy}`,
    fields: fieldsThatDiffer(recorded.decision, made),
  };
}

function fieldsThatDiffer(recorded: RecordedDecision, { decision }: Placement): string[] {
  const fields: string[] = [];
  const note = (name: string, before: unknown, now: unknown): void => {
    if (!Object.is(before, now)) fields.push(`${name}: recorded ${String(before)}, now ${String(now)}`);
  };
  note("branch", recorded.branch, decision.branch);
  note("candidates", recorded.rows.map(({ replicaId }) => replicaId).join(" "), decision.replicaIds.join(" "));
  for (let row = 0; row < Math.min(recorded.rows.length, decision.rows); row++) {
    const { replicaId, cachedTokens, figure } = recorded.rows[row]!;
    note(`${replicaId} cached tokens`, cachedTokens, decision.cachedTokens(row));
    note(
      `${replicaId} ${recorded.priced ? "price" : "score"}`,
      figure,
      decision.priced ? decision.totalMs(row) : decision.score(row),
    );
  }
  if (fields.length === 0)
    fields.push("something that only the digest shows: a term, the age of a fact, a draw, the id");
  return fields;
}
