import type { Clock } from "#src/determinism/clock.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { Doubt } from "#src/fleet/precise/viewState.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";

/** To be told everything anew costs the engine a whole replay, so it is not asked for that all the time. */
const REPAIR_EVERY_MS = 300_000;

/** Doubts that a history told from its start would end. What could not be repeated before won't be now. */
const MENDED_BY_TELLING: ReadonlySet<Doubt> = new Set<Doubt>([
  "batch_missing",
  "parent_unknown",
  "removal_unknown",
  "hash_reused",
]);

export interface RepairTools {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly log: RequestLog;
  /** Its streams begin anew, with or without a replay of what was. */
  readonly startOver: (endpoint: EngineEndpoint) => void;
  /** The same, only where what was can be replayed. */
  readonly repeatAll: (endpoint: EngineEndpoint) => void;
}

/** Has an engine's events told anew where that makes its view exact again, or makes it a view at all. */
export class ViewRepair {
  readonly #tools: RepairTools;
  readonly #repairedMs = new WeakMap<Replica, number>();

  constructor(tools: RepairTools) {
    this.#tools = tools;
  }

  /** To be called now and then, never from within what a stream tells. */
  look(): void {
    const { fleet, clock, log, startOver, repeatAll } = this.#tools;
    const nowMs = clock.nowMs();
    for (const replica of fleet.replicas()) {
      const { state } = fleet.index.view(replica.index);
      const isMisfit = wouldFitIfToldAnew(fleet, replica);
      const isDoubted = state.state === "unsure" && MENDED_BY_TELLING.has(state.why);
      if (!isMisfit && !isDoubted) continue;
      if (nowMs - (this.#repairedMs.get(replica) ?? Number.NEGATIVE_INFINITY) < REPAIR_EVERY_MS) continue;
      this.#repairedMs.set(replica, nowMs);
      log.event("warn", "an engine's KV events are told anew", { replica: replica.id, view: state });
      // A view that was dropped has nothing to lose.
      if (isMisfit) startOver(replica.endpoint);
      else repeatAll(replica.endpoint);
    }
  }
}

/** The replica's view was dropped because it was kept in larger blocks than its pool's, but the engine's can be divided. */
export function wouldFitIfToldAnew(fleet: Fleet, { index, profile }: Replica): boolean {
  const { state, engineBlockTokens } = fleet.index.view(index);
  if (state.state !== "dropped" || state.why !== "block_size" || engineBlockTokens === null) return false;
  const sizes = (profile?.models ?? []).map(({ id }) => fleet.blockTokens(id));
  return sizes.every((size) => size === null || engineBlockTokens % size === 0);
}
