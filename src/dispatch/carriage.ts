import { openAiErrorObject } from "#src/errors/openAiError.ts";
import { RouterError, toRouterError } from "#src/errors/routerError.ts";
import { clientClosed } from "#src/errors/shared.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";
import type { Attempt, Call, CallResult } from "./call.ts";
import type { CarrierOptions } from "./carrier.ts";
import { answeredStatus, replicaRemoved, replicaSilent } from "./failures.ts";
import type { LegEnd } from "./leg.ts";
import { makeLeg } from "./legMaker.ts";
import type { HandoffNumbers } from "./pair/handoffNumbers.ts";
import { PairRun } from "./pair/pairRun.ts";
import type { PairListener } from "./pair/pairRun.ts";
import { mayRetry } from "./retryRule.ts";
import type { Run } from "./run.ts";
import type { Placed } from "./schedulerPort.ts";
import { NO_USAGE } from "./usage.ts";

/** Output is reported to the scheduler at most this often per stream: it moves predictions, not answers. */
const PROGRESS_EVERY_MS = 100;
/** An answer of this status was produced by an engine that failed at it. */
const ENGINE_ERROR_STATUS = 500;

/**
 * One request on its way: placing → leg → ended, with placing again after a leg that failed before the client was sent
 * anything. Client disconnect, deadline and shutdown end it from any state; each placement is finished exactly once.
 */
export class Carriage<P extends Placed, T> implements PairListener {
  /** Where the carrier keeps it. */
  slot = -1;
  readonly #call: Call<P>;
  readonly #options: CarrierOptions<P, T>;
  readonly #handoffs: HandoffNumbers;
  readonly #done: (result: CallResult<P>) => void;
  readonly #excluded = new Set<string>();
  #attempts = 0;
  #retriesUsed = 0;
  #waitsSinceMs = 0;
  #ticket: T | null = null;
  #placement: P | null = null;
  #run: Run | null = null;
  #ended = false;
  /** What made the last attempt fail: says more than "no replica is left". */
  #failure: RouterError | null = null;
  #last: Attempt<P> | null = null;
  #progressMs = 0;
  /** A socket may hold bytes of the body yet. */
  #bodyHeld = false;

  constructor(
    call: Call<P>,
    options: CarrierOptions<P, T>,
    handoffs: HandoffNumbers,
    done: (result: CallResult<P>) => void,
  ) {
    this.#call = call;
    this.#handoffs = handoffs;
    this.#options = options;
    this.#done = done;
  }

  start(): void {
    const { downstream } = this.#call;
    if (!downstream.open) {
      this.#end(clientClosed(), NO_USAGE);
      return;
    }
    downstream.onGone(() => this.#interrupt({ kind: "client_gone" }, clientClosed()));
    this.#waitsSinceMs = this.#options.clock.nowMs();
    this.#place();
  }

  shutDown(error: RouterError): void {
    this.#interrupt({ kind: "shutdown" }, error);
  }

  #place(): void {
    const { scheduler, clock } = this.#options;
    const attempt = ++this.#attempts;
    let settled = false;
    const settle = (result: P | RouterError): void => {
      settled = true;
      this.#ticket = null;
      this.#settle(result);
    };
    const ticket = scheduler.submit(this.#call.request, clock.nowMs(), settle, {
      attempt,
      sinceMs: this.#waitsSinceMs,
      excluded: this.#excluded,
      streamed: this.#call.streamed,
      onLost: (why, leg) => {
        if (attempt !== this.#attempts || this.#call.downstream.started) return;
        this.#run?.fail(why === "left" ? replicaRemoved() : replicaSilent(), leg);
      },
    });
    if (!settled) this.#ticket = ticket;
  }

  #settle(result: P | RouterError): void {
    const { clock, scheduler } = this.#options;
    if (result instanceof RouterError) {
      if (!this.#ended) this.#end(this.#failure ?? result, NO_USAGE);
      return;
    }
    if (this.#ended) {
      scheduler.finish(result, { kind: "client_gone" }, clock.nowMs());
      return;
    }
    this.#placement = result;
    this.#run = null;
    try {
      this.#run = this.#makeRun(result);
    } catch (caught) {
      this.onLegEnd({ kind: "failed", error: toRouterError(caught) });
      return;
    }
    this.#run.start();
  }

  #makeRun(placement: P): Run {
    const call = this.#call;
    const { upstreams, clock } = this.#options;
    const { replica, prefill } = placement;
    if (prefill && call.split !== undefined) {
      const ids = this.#handoffs.next(call.request.id, this.#attempts);
      return new PairRun({ call, split: call.split, placement, prefill, ids, upstreams, clock, listener: this });
    }
    return makeLeg(call, this.#options, {
      replica,
      requestId: call.request.id,
      body: call.body(placement),
      downstream: call.downstream,
      answerHeaders: (status) => call.answerHeaders?.(placement, status) ?? [],
      stripUsage: call.stripUsage,
      listener: this,
    });
  }

  // PairListener

  onPrefilled(usage: Usage, nowMs: number): void {
    if (this.#placement !== null) this.#options.scheduler.prefilled(this.#placement, usage, nowMs);
  }

  onFirstToken(nowMs: number): void {
    if (this.#placement !== null) this.#options.scheduler.firstToken(this.#placement, nowMs);
  }

  onEvents(events: number, gapMs: number, nowMs: number): void {
    const placement = this.#placement;
    if (placement === null) return;
    this.#call.onEvents?.(placement, events, gapMs);
    if (nowMs - this.#progressMs < PROGRESS_EVERY_MS) return;
    this.#progressMs = nowMs;
    this.#options.scheduler.progress(placement, this.#run?.stream?.tokenEvents ?? 0, nowMs);
  }

  onLegEnd(end: LegEnd): void {
    const { clock } = this.#options;
    const { downstream, request } = this.#call;
    const { started } = downstream;
    const error = end.kind === "answered" ? null : end.error;
    const nowMs = clock.nowMs();
    const retry = !started && downstream.open && mayRetry(end) && nowMs < request.deadlineMs && this.#retryLeft(end);
    const failedId = this.#placement === null ? null : failedReplica(this.#placement, end);
    if (end.kind !== "answered" || !end.sent) this.#bodyHeld = true;
    this.#finish(outcomeOf(end, started), error, retry);
    if (retry) {
      this.#failure = error;
      if (end.kind === "failed") {
        if (failedId !== null) this.#excluded.add(failedId);
        this.#waitsSinceMs = nowMs;
      }
      this.#place();
      return;
    }
    if (error !== null) this.#breakOff(error);
    this.#end(error, end.kind === "answered" ? end.usage : NO_USAGE);
  }

  /**
   * A busy engine has executed nothing and uses up no retry: the scheduler holds it back for as long as it asked, and
   * ends the waiting when the queue's time is over.
   */
  #retryLeft(end: LegEnd): boolean {
    return end.kind === "busy" || this.#retriesUsed++ < this.#options.maxRetries;
  }

  /** Ends it from outside, in whatever state it is. */
  #interrupt(outcome: AttemptOutcome, error: RouterError): void {
    if (this.#ended) return;
    const { scheduler, clock } = this.#options;
    const ticket = this.#ticket;
    this.#run?.abort();
    this.#bodyHeld = true;
    this.#finish(outcome, error, false);
    this.#breakOff(error);
    this.#end(error, NO_USAGE);
    if (ticket !== null) scheduler.cancel(ticket, clock.nowMs());
  }

  /** Settles the current placement, if there is one, with the scheduler. */
  #finish(outcome: AttemptOutcome, error: RouterError | null, retried: boolean): void {
    const placement = this.#placement;
    if (placement === null) return;
    this.#placement = null;
    this.#options.scheduler.finish(placement, outcome, this.#options.clock.nowMs());
    const run = this.#run;
    this.#last = {
      placement,
      number: this.#attempts,
      outcome,
      error,
      status: run?.status ?? 0,
      sentMs: run?.sentMs ?? Number.NaN,
      firstByteMs: run?.firstByteMs ?? Number.NaN,
      firstTokenMs: run?.stream?.firstTokenMs ?? Number.NaN,
      lastByteMs: run?.lastByteMs ?? Number.NaN,
      events: run?.stream?.tokenEvents ?? 0,
      retried,
    };
    this.#call.onAttempt?.(this.#last);
  }

  /** Where the client already has part of an answer, it must not take that for the whole. */
  #breakOff(error: RouterError): void {
    const { downstream, errorEvent, request } = this.#call;
    if (!downstream.started || !downstream.open) return;
    const stream = this.#run?.stream ?? null;
    if (stream === null) {
      downstream.destroy();
      return;
    }
    const event = errorEvent?.(error) ?? `data: ${JSON.stringify({ error: openAiErrorObject(error, request.id) })}\n\n`;
    downstream.write(Buffer.from(stream.midEvent ? `\n\n${event}` : event));
    downstream.end();
  }

  #end(error: RouterError | null, usage: Usage): void {
    this.#ended = true;
    this.#done({
      error,
      status: this.#run?.status ?? 0,
      usage,
      attempts: this.#attempts,
      bodyFree: !this.#bodyHeld,
      last: this.#last,
    });
  }
}

function outcomeOf(end: LegEnd, started: boolean): AttemptOutcome {
  const leg = end.leg === undefined ? {} : { leg: end.leg };
  if (end.kind === "client_gone") return { kind: "client_gone" };
  if (end.kind === "busy") return { kind: "busy", ...leg, status: end.status, retryAfterMs: end.retryAfterMs };
  if (end.kind === "failed") return { kind: "failed", ...leg, error: end.error, started };
  if (end.status >= ENGINE_ERROR_STATUS) return { kind: "failed", ...leg, error: answeredStatus(end.status), started };
  return end;
}

/** Whom to leave out when it is tried again. Of KV that did not get across it is the side that had it: the other may do it alone. */
function failedReplica({ replica, prefill }: Placed, { leg }: LegEnd): string {
  return leg === "prefill" || leg === "link" ? (prefill?.replica.id ?? replica.id) : replica.id;
}
