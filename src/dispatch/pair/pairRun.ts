import type { Clock } from "#src/determinism/clock.ts";
import type { HandoffIds } from "#src/engines/handoff/handoff.ts";
import { toRouterError, type RouterError } from "#src/errors/routerError.ts";
import type { LegName, Usage } from "#src/scheduler/outcome.ts";
import type { Call } from "../call.ts";
import { prefillTooLong } from "../failures.ts";
import type { Leg, LegEnd, LegListener } from "../leg.ts";
import { makeLeg } from "../legMaker.ts";
import type { Run } from "../run.ts";
import type { Placed } from "../schedulerPort.ts";
import type { StreamObserver } from "../streamObserver.ts";
import type { Upstreams } from "../upstreams.ts";
import { merge, readUsage } from "../usage.ts";
import { PrefillAnswer } from "./prefillAnswer.ts";
import type { PlacedPrefill, SplitCall } from "./splitCall.ts";

/** A decode leg leaves within this share of the lease; the rest is for the decode engine's own queue. */
const SEND_WITHIN_SHARE = 0.5;
/** An engine that cannot fetch what it was told to answers so, whichever side is to blame. */
const FETCH_FAILED_STATUS = 500;

export interface PairRunOptions<P extends Placed> {
  readonly call: Call<P>;
  readonly split: SplitCall<P>;
  readonly placement: P;
  readonly prefill: PlacedPrefill;
  readonly ids: HandoffIds;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly listener: PairListener;
}

export interface PairListener extends LegListener {
  /** The prefill engine has answered well. */
  onPrefilled(usage: Usage, nowMs: number): void;
}

/**
 * Both legs of one attempt on a pair. In turn: prefill → decode; together: both at once. The end of the decode leg is the
 * end of all; so is that of a prefill leg without which nothing can come. Whichever side ends it, the other is aborted.
 */
export class PairRun<P extends Placed> implements Run {
  readonly #options: PairRunOptions<P>;
  readonly #answer: PrefillAnswer;
  #prefill: Leg | null = null;
  #decode: Leg | null = null;
  #prefillSentMs = Number.NaN;
  #handedOver = true;
  #ended = false;

  constructor(options: PairRunOptions<P>) {
    this.#options = options;
    this.#answer = new PrefillAnswer(options.prefill.handoff.order === "in_turn");
  }

  get sentMs(): number {
    return this.#prefill?.sentMs ?? this.#prefillSentMs;
  }

  get status(): number {
    return this.#decode?.status ?? this.#answer.status;
  }

  get firstByteMs(): number {
    return this.#decode?.firstByteMs ?? Number.NaN;
  }

  get lastByteMs(): number {
    return this.#decode?.lastByteMs ?? Number.NaN;
  }

  get stream(): StreamObserver | null {
    return this.#decode?.stream ?? null;
  }

  start(): void {
    const { placement, split, ids, prefill, call } = this.#options;
    const together = prefill.handoff.order === "together";
    this.#prefill = this.#legTo(prefill.replica, {
      body: split.prefill(placement, ids),
      downstream: this.#answer,
      stripUsage: false,
      readsAnswer: true,
      listener: {
        onFirstToken: () => undefined,
        onEvents: () => undefined,
        onLegEnd: (end) => this.#onPrefillEnd(end),
      },
    });
    // Before either leaves, so that nothing has left where a body cannot be made.
    if (together) this.#decode = this.#decodeLeg(null, Number.POSITIVE_INFINITY);
    this.#prefill.start();
    if (!this.#ended && call.downstream.open) this.#decode?.start();
  }

  abort(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#prefill?.abort();
    this.#decode?.abort();
  }

  fail(error: RouterError, leg: LegName): void {
    if (leg === "prefill") this.#end({ kind: "failed", error, leg });
    else this.#end({ kind: "failed", error });
  }

  #onPrefillEnd(end: LegEnd): void {
    if (this.#ended) return;
    const { clock, prefill, listener, call } = this.#options;
    this.#prefillSentMs = this.sentMs;
    this.#prefill = null;
    if (end.kind === "answered" && end.status < 300) {
      const nowMs = clock.nowMs();
      if (prefill.handoff.order === "together") listener.onPrefilled(end.usage, nowMs);
      else if (this.#answer.tooLong) this.#end({ kind: "failed", error: prefillTooLong(), leg: "prefill" });
      else this.#handOver(end.usage, nowMs);
      return;
    }
    // The decode side has begun to answer: it has all it needs.
    if (call.downstream.started) return;
    if (end.kind === "answered") this.#answer.passTo(call.downstream);
    this.#end({ ...end, leg: "prefill" });
  }

  #handOver(usage: Usage, nowMs: number): void {
    const { prefill, listener } = this.#options;
    const { leaseMs } = prefill;
    const { body } = this.#answer;
    listener.onPrefilled(merge(usage, readUsage(body.toString("latin1"))), nowMs);
    try {
      this.#decode = this.#decodeLeg(
        body,
        leaseMs === null ? Number.POSITIVE_INFINITY : nowMs + SEND_WITHIN_SHARE * leaseMs,
      );
    } catch (caught) {
      this.#end({ kind: "failed", error: toRouterError(caught) });
      return;
    }
    this.#decode.start();
  }

  #decodeLeg(answer: Buffer | null, sendBeforeMs: number): Leg {
    const { call, split, placement, ids, listener } = this.#options;
    const { handedOver, body } = split.decode(placement, ids, answer);
    this.#handedOver = handedOver;
    return this.#legTo(placement.replica, {
      body,
      downstream: call.downstream,
      stripUsage: call.stripUsage,
      sendBeforeMs,
      listener: {
        onFirstToken: (nowMs) => listener.onFirstToken(nowMs),
        onEvents: (events, gapMs, nowMs) => listener.onEvents(events, gapMs, nowMs),
        onLegEnd: (end) => this.#onDecodeEnd(end),
      },
    });
  }

  #onDecodeEnd(end: LegEnd): void {
    const unfetched = this.#handedOver && this.#decode?.status === FETCH_FAILED_STATUS;
    const expired = end.kind === "failed" && end.error.code === "kv_expired";
    this.#end(end.kind === "failed" && (unfetched || expired) ? { ...end, leg: "link" } : end);
  }

  #end(end: LegEnd): void {
    if (this.#ended) return;
    // Whichever leg is still under way; the one that has ended does not mind.
    this.abort();
    this.#options.listener.onLegEnd(end);
  }

  #legTo(
    replica: Placed["replica"],
    plan: Omit<Parameters<typeof makeLeg>[2], "replica" | "requestId" | "answerHeaders">,
  ): Leg {
    const { call, placement, ids } = this.#options;
    return makeLeg(call, this.#options, {
      ...plan,
      replica,
      requestId: ids.requestId,
      answerHeaders: (status) => call.answerHeaders?.(placement, status) ?? [],
      refusesErrors: true,
    });
  }
}
