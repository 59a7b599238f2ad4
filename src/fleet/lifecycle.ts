/** Why a replica was taken out of rotation. */
export type QuarantineCause = "failures" | "busy";

/**
 * Where a replica is in its life. Only `ready` takes any number of requests; a `quarantined` replica whose time is up
 * takes one trial request, which makes it `half_open` until that request has ended.
 */
export type Lifecycle =
  /** Known by address only: nothing has been answered yet. */
  | { readonly state: "probing"; readonly sinceMs: number }
  /** Answers, but its model is not loaded yet or its health route says "not now". */
  | { readonly state: "loading"; readonly sinceMs: number }
  | {
      readonly state: "ready";
      readonly sinceMs: number;
      /** Genuine failures in a row. */
      readonly failures: number;
      /** Exponentially weighted share of requests that failed. */
      readonly failureShare: number;
      /** Answers 429/503 in a row. */
      readonly busyAnswers: number;
      /** Health probes in a row that timed out without a token seen meanwhile. */
      readonly hungProbes: number;
    }
  /** `refused`: nobody listens there. `hung`: probes get no answer and no token comes. */
  | { readonly state: "unreachable"; readonly sinceMs: number; readonly cause: "refused" | "hung" }
  | {
      readonly state: "quarantined";
      readonly sinceMs: number;
      readonly cause: QuarantineCause;
      /** How often in a row; the time out doubles with it. */
      readonly round: number;
      readonly untilMs: number;
    }
  | { readonly state: "half_open"; readonly sinceMs: number; readonly cause: QuarantineCause; readonly round: number }
  /** Asked to leave: finishes what it has, gets nothing new. */
  | { readonly state: "draining"; readonly sinceMs: number };

export type LifecycleEvent =
  | { readonly kind: "probe_ready" }
  | { readonly kind: "probe_loading" }
  /** Nobody listens at the address. */
  | { readonly kind: "probe_refused" }
  /** The probe got no answer in time. `alive`: tokens of this replica were seen meanwhile. */
  | { readonly kind: "probe_hung"; readonly alive: boolean }
  | { readonly kind: "request_bound" }
  | { readonly kind: "request_answered" }
  /** 429 or 503 from the engine. */
  | { readonly kind: "request_busy" }
  /** Connection refused or reset, 5xx other than 503, stall. */
  | { readonly kind: "request_failed" }
  /** Ended without a verdict on the replica: the client left, or the router shut down. */
  | { readonly kind: "request_dropped" }
  /** Another process answers there now. */
  | { readonly kind: "restarted" }
  | { readonly kind: "drain" }
  | { readonly kind: "resume" };

export interface LifecycleLimits {
  /** Genuine failures in a row that quarantine. */
  readonly failuresToQuarantine: number;
  /** Weighted share of failures that quarantines. */
  readonly failureShareToQuarantine: number;
  /** 429/503 in a row that quarantine: a replica that refuses instantly would else look like the least loaded one. */
  readonly busyToQuarantine: number;
  readonly hungProbesToUnreachable: number;
  readonly quarantineBaseMs: number;
  readonly quarantineMaxMs: number;
}

export const LIFECYCLE_LIMITS: LifecycleLimits = {
  failuresToQuarantine: 3,
  failureShareToQuarantine: 0.5,
  busyToQuarantine: 5,
  hungProbesToUnreachable: 3,
  quarantineBaseMs: 1_000,
  quarantineMaxMs: 60_000,
};

/** Weight of one outcome in `failureShare`: about the last ten requests count. */
const OUTCOME_WEIGHT = 0.1;
/** Below this the share is as good as zero, and a clean success needs no new state. */
const NEGLIGIBLE_SHARE = 1e-3;

function ready(nowMs: number): Lifecycle {
  return { state: "ready", sinceMs: nowMs, failures: 0, failureShare: 0, busyAnswers: 0, hungProbes: 0 };
}

function quarantined(cause: QuarantineCause, round: number, nowMs: number, limits: LifecycleLimits): Lifecycle {
  const forMs = Math.min(limits.quarantineMaxMs, limits.quarantineBaseMs * 2 ** Math.min(round, 30));
  return { state: "quarantined", sinceMs: nowMs, cause, round, untilMs: nowMs + forMs };
}

function afterOutcome(
  now: Extract<Lifecycle, { state: "ready" }>,
  kind: "request_answered" | "request_busy" | "request_failed",
  nowMs: number,
  limits: LifecycleLimits,
): Lifecycle {
  if (kind === "request_busy") {
    const busyAnswers = now.busyAnswers + 1;
    if (busyAnswers >= limits.busyToQuarantine) return quarantined("busy", 0, nowMs, limits);
    return { ...now, busyAnswers };
  }
  if (kind === "request_failed") {
    const failures = now.failures + 1;
    const failureShare = now.failureShare + OUTCOME_WEIGHT * (1 - now.failureShare);
    if (failures >= limits.failuresToQuarantine || failureShare >= limits.failureShareToQuarantine)
      return quarantined("failures", 0, nowMs, limits);
    return { ...now, failures, failureShare };
  }
  if (now.failures === 0 && now.busyAnswers === 0 && now.hungProbes === 0 && now.failureShare < NEGLIGIBLE_SHARE)
    return now;
  return { ...now, failures: 0, busyAnswers: 0, hungProbes: 0, failureShare: now.failureShare * (1 - OUTCOME_WEIGHT) };
}

/** The one place where a replica's state changes. Returns the same object when nothing does. */
export function transition(
  now: Lifecycle,
  event: LifecycleEvent,
  nowMs: number,
  limits: LifecycleLimits = LIFECYCLE_LIMITS,
): Lifecycle {
  if (event.kind === "drain") return now.state === "draining" ? now : { state: "draining", sinceMs: nowMs };
  if (now.state === "draining") return event.kind === "resume" ? { state: "probing", sinceMs: nowMs } : now;

  switch (event.kind) {
    case "resume":
      return now;
    case "restarted":
      return { state: "probing", sinceMs: nowMs };
    case "probe_refused":
      return now.state === "unreachable" && now.cause === "refused"
        ? now
        : { state: "unreachable", sinceMs: nowMs, cause: "refused" };
    case "probe_loading":
      // See below; and the last of a pool, tried although it is quarantined, must not be given up for its health route.
      if (now.state === "quarantined" || now.state === "half_open" || now.state === "loading") return now;
      return { state: "loading", sinceMs: nowMs };
    case "probe_ready":
      // A health route proves that the process lives, not that requests succeed: quarantine ends by a trial only.
      if (now.state === "quarantined" || now.state === "half_open") return now;
      if (now.state === "ready") return now.hungProbes === 0 ? now : { ...now, hungProbes: 0 };
      return ready(nowMs);
    case "probe_hung": {
      if (event.alive || now.state !== "ready") return now;
      const hungProbes = now.hungProbes + 1;
      if (hungProbes >= limits.hungProbesToUnreachable) return { state: "unreachable", sinceMs: nowMs, cause: "hung" };
      return { ...now, hungProbes };
    }
    case "request_bound":
      if (now.state === "quarantined" && nowMs >= now.untilMs)
        return { state: "half_open", sinceMs: nowMs, cause: now.cause, round: now.round };
      return now;
    case "request_dropped":
      if (now.state === "half_open")
        return { state: "quarantined", sinceMs: nowMs, cause: now.cause, round: now.round, untilMs: nowMs };
      return now;
    case "request_answered":
    case "request_busy":
    case "request_failed":
      break;
  }
  if (now.state === "ready") return afterOutcome(now, event.kind, nowMs, limits);
  // A hung probe was wrong about a replica that answers; a loading one has its own way back.
  if (event.kind === "request_answered")
    return now.state === "half_open" || (now.state === "unreachable" && now.cause === "hung") ? ready(nowMs) : now;
  if (now.state === "half_open")
    return quarantined(event.kind === "request_busy" ? "busy" : "failures", now.round + 1, nowMs, limits);
  return now;
}
