import type { Fleet } from "#src/fleet/fleet.ts";
import type { ServiceClass } from "#src/scheduler/classes.ts";
import type { QueueLimits } from "#src/scheduler/queueLimits.ts";
import type { ComparisonPlan } from "./comparison.ts";
import { recordedEngines } from "./recordedEngines.ts";
import type { Trace } from "./traces/traceRow.ts";
import type { Senders } from "./workload/mix.ts";
import { openLoop } from "./workload/traceWorkload.ts";
import type { RouterSetup } from "./world/runSettings.ts";

/** What was recorded, as a simulation needs it. */
export interface Recorded {
  readonly fleet: Fleet;
  readonly model: string;
  readonly trace: Trace;
  readonly queue: QueueLimits;
  readonly classes: readonly ServiceClass[];
  readonly maxRetries: number;
}

/** Events are known to come at once and in order: what delayed or lost them in production was not recorded. */
const PROMPT_EVENTS = { delayMs: 1, lossShare: 0, replayMs: 100 };
/** A trace says who sends, so that nobody is drawn. */
const NO_SENDERS: Senders = { classes: [], tenants: [], adapters: [] };

/** Recorded traffic on a fleet like the recorded one. `base` says what is not known of it. Throws SpecError. */
export function recordedPlan(
  recorded: Recorded,
  base: ComparisonPlan["settings"],
  routers: readonly RouterSetup[],
  seeds: readonly number[],
): ComparisonPlan {
  const { trace, model } = recorded;
  const { engines, adapters, hasEvents } = recordedEngines(recorded.fleet, model);
  const { blockTokens } = engines[0]!.core;
  const named = trace.rows.flatMap(({ sender }) => sender?.adapter ?? []);
  return {
    settings: {
      ...base,
      model,
      engines,
      queue: { ...recorded.queue, maxBytes: Number.POSITIVE_INFINITY },
      classes: recorded.classes,
      maxRetries: recorded.maxRetries,
      adapters: [...new Set([...adapters, ...named])],
      events: hasEvents ? PROMPT_EVENTS : null,
      identityTokens: hasEvents ? blockTokens : identityTokens(trace, blockTokens),
    },
    routers,
    rates: [1],
    seeds,
    workload: (rate, seed) => openLoop(trace, rate, NO_SENDERS, seed),
    fixedOrder: true,
  };
}

/** Blocks as long as the recorded ones, in whole blocks of the engines. */
function identityTokens({ identityTokens }: Trace, blockTokens: number): number {
  return blockTokens * Math.max(1, Math.round((identityTokens ?? blockTokens) / blockTokens));
}
