import type { Clock } from "#src/determinism/clock.ts";
import type { Carrier } from "#src/dispatch/carrier.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { IdentityWorkers } from "#src/request/identityWorkers.ts";
import type { TokenIdentities } from "#src/request/tokenIdentities.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import type { Scheduler } from "#src/scheduler/scheduler.ts";
import type { Ticket } from "#src/scheduler/ticket.ts";
import type { Metrics } from "#src/telemetry/metrics.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";
import type { Readiness } from "./readiness.ts";

/** What the gateway stands on. */
export interface GatewayParts {
  readonly fleet: Fleet;
  readonly scheduler: Scheduler;
  readonly carrier: Carrier<Placement, Ticket>;
  readonly metrics: Metrics;
  readonly log: RequestLog;
  readonly clock: Clock;
  readonly reader: IdentityWorkers;
  readonly tokens: TokenIdentities;
  readonly readiness: () => Readiness;
  readonly startedSeconds: number;
}
