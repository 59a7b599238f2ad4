import type { Fleet } from "#src/fleet/fleet.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { AttemptOutcome, Usage } from "./outcome.ts";
import { decodeShareMs } from "./pairs/handoffTimes.ts";
import { dropPrefill, fetched } from "./pairs/prefillEnds.ts";
import type { PrefillLeg } from "./pairs/prefillLeg.ts";
import type { Placement } from "./placement.ts";
import { PriorityQueue } from "./priorityQueue.ts";
import { PromptRuns, type PromptCounts } from "./promptRuns.ts";
import { StepWatch } from "./stepWatch.ts";

/** Where more than this share of the time was spent behind others, it says more of them than of the prompt. */
const MAX_QUEUE_SHARE = 0.1;
/** Decode steps that a lone prompt still meets: it joins in the middle of one, and shares its own with the batch. */
const STEPS_MET = 1.5;
/** An answer in one piece tells the step time only if it has enough steps. */
const MIN_STEPS_IN_ONE_PIECE = 16;

/** Where predictions of what is cached are right this often, what was computed is known without being told. */
const TRUSTED_AGREEMENT = 0.95;

type TokenCounts = Pick<Usage, "promptTokens" | "cachedTokens">;
const UNREPORTED: TokenCounts = { promptTokens: null, cachedTokens: null };

/** Carries what became of placements into the fleet: load, times, lengths, cache, health. Chooses nothing. */
export class Feedback {
  readonly #fleet: Fleet;
  readonly #steps = new StepWatch();
  readonly #runs = new PromptRuns();
  /** Answers in one piece show no first token; they are taken to decode once their prompt should be computed. */
  readonly #presumed = new PriorityQueue<Placement>();
  #sequence = 0;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  placed(placement: Placement): void {
    const { reservation, loadAtBinding, prefill } = placement;
    // The decode side of a pair computes no prompt.
    const computing = prefill ?? placement;
    this.#steps.placed(computing.replica);
    this.#runs.placed(
      computing,
      placement.streamed && (prefill === null || prefill.handoff.order === "in_turn"),
      placement.boundMs,
    );
    placement.promptsBefore = this.#steps.prompts(computing.replica);
    if (placement.streamed) return;
    const promptMs = prefill === null ? reservation.prefillMs : prefill.readyMs + prefill.transferMs;
    const dueMs = placement.boundMs + loadAtBinding.queueMs + promptMs;
    placement.presumed = this.#presumed.push(placement, dueMs, this.#sequence++);
  }

  /** Brings the ledger up to date with first tokens that nobody sees. To be called before load is looked at. */
  presumeFirstTokens(nowMs: number): void {
    for (let next = this.#presumed.first; next !== null && next.key <= nowMs; next = this.#presumed.first) {
      this.#presumed.remove(next);
      this.#fleet.ledger.firstToken(next.value.reservation, next.key);
    }
  }

  /** The prefill leg was answered, by an engine that may keep the KV until it is fetched. Later calls do nothing. */
  prefilled(placement: Placement, usage: Usage | null, nowMs: number): void {
    const { prefill } = placement;
    if (placement.finished || prefill === null || prefill.prefilled) return;
    prefill.prefilledMs = nowMs;
    prefill.usage = usage;
    const { reservation, prefix, replica, handoff, transfer, leaseMs } = prefill;
    if (reservation.live) {
      replica.health.answered(nowMs);
      this.#fleet.index.confirm(prefix, nowMs);
      this.#runs.computed(prefill, nowMs);
      this.#runs.told(prefill, countsOf(prefill, usage ?? UNREPORTED));
      if (usage !== null) this.#compareCache(prefill, placement.request, usage);
    }
    if (handoff.order === "in_turn") transfer.begin(nowMs);
    // What the decode side has already begun with is not kept for it any more.
    if (leaseMs === null || !Number.isNaN(placement.firstTokenMs)) this.#fleet.ledger.release(reservation, nowMs);
    else this.#fleet.ledger.hold(reservation, nowMs);
  }

  firstToken(placement: Placement, nowMs: number): void {
    if (placement.finished || !Number.isNaN(placement.firstTokenMs)) return;
    placement.firstTokenMs = nowMs;
    this.#dropPresumed(placement);
    if (placement.prefill !== null) this.#handedOver(placement, placement.prefill, nowMs);
    if (placement.reservation.live) {
      this.#runs.computed(placement, nowMs);
      if (isKnown(placement)) this.#runs.told(placement, countsOf(placement, UNREPORTED));
      // Only what was really seen proves life: a presumed first token must not keep a silent engine in use.
      placement.replica.health.tokenSeen(nowMs);
    }
    this.#fleet.ledger.firstToken(placement.reservation, nowMs);
    if (placement.reservation.live) this.#fleet.index.confirm(placement.prefix, nowMs);
    this.#steps.tokens(placement, 1, nowMs);
  }

  progress(placement: Placement, outputTokens: number, nowMs: number): void {
    if (placement.finished) return;
    if (Number.isNaN(placement.firstTokenMs)) this.firstToken(placement, nowMs);
    this.#fleet.ledger.progress(placement.reservation, outputTokens, nowMs);
    if (!placement.reservation.live) return;
    placement.replica.health.tokenSeen(nowMs);
    this.#steps.tokens(placement, outputTokens, nowMs);
  }

  heldUp(placement: Placement): void {
    this.#steps.heldUp(placement);
  }

  /** False if the placement had ended before. */
  finish(placement: Placement, outcome: AttemptOutcome, nowMs: number): boolean {
    if (placement.finished) return false;
    placement.finished = true;
    this.#dropPresumed(placement);
    const { reservation, prefix, prefill } = placement;
    const answered = outcome.kind === "answered" && outcome.status < 300;
    this.#judge(placement, outcome, nowMs);
    if (reservation.live) {
      if (answered) {
        if (prefill !== null) fetched(prefill, this.#fleet, nowMs);
        else if (Number.isNaN(placement.firstTokenMs)) this.#observeWhole(placement, outcome.usage, nowMs);
        this.#fleet.index.confirm(prefix, nowMs);
        // A decode side counts as cached what it was handed.
        if (prefill === null) this.#compareCache(placement, placement.request, outcome.usage);
      }
    }
    // Where the replica's cache is gone as well as where nothing was computed: the index knows its incarnations.
    if (!reservation.live || (!answered && Number.isNaN(placement.firstTokenMs))) this.#fleet.index.abandon(prefix);
    this.#runs.told(prefill ?? placement, answered ? countsOf(placement, outcome.usage) : null);
    if (answered) this.#observeLengths(placement, outcome.usage);
    this.#fleet.ledger.release(reservation, nowMs);
    if (prefill !== null) dropPrefill(prefill, this.#fleet, nowMs);
    return true;
  }

  /** The first token of a decode side that somebody sees: by then it has the KV. */
  #handedOver(placement: Placement, prefill: PrefillLeg, nowMs: number): void {
    const { transfer } = prefill;
    const otherMs = decodeShareMs(placement, nowMs);
    if (Number.isNaN(otherMs)) transfer.end(nowMs);
    else transfer.arrived(otherMs, nowMs);
    if (prefill.prefilled) fetched(prefill, this.#fleet, nowMs);
  }

  #judge(placement: Placement, outcome: AttemptOutcome, nowMs: number): void {
    // Neither side is at fault if what one has computed does not reach the other.
    if (outcome.leg === "link") return;
    const { boundMs, prefill } = placement;
    const { replica, reservation } = outcome.leg === "prefill" && prefill !== null ? prefill : placement;
    // What a dead incarnation did says nothing of the replica that answers there now.
    if (!reservation.live) return;
    switch (outcome.kind) {
      case "answered":
        // 501: the engine does not have this route. That is an answer, not a failure.
        if (outcome.status >= 500 && outcome.status !== 501) replica.health.failed(nowMs);
        else replica.health.answered(nowMs);
        return;
      case "busy":
        replica.health.busy({ retryAfterMs: outcome.retryAfterMs, others: replica.load.requests - 1, boundMs }, nowMs);
        return;
      case "failed":
        replica.health.failed(nowMs);
        return;
      case "client_gone":
      case "shutdown":
        return;
    }
  }

  /** An answer in one piece: its whole time is prefill and decode together. */
  #observeWhole(placement: Placement, usage: Usage, nowMs: number): void {
    const { replica, reservation, request, loadAtBinding } = placement;
    const elapsedMs = nowMs - placement.boundMs;
    const alone = placement.promptsBefore === this.#steps.prompts(replica);
    if (!request.generates || usage.outputTokens === 1) {
      this.#observeLone(placement, elapsedMs, usage);
      return;
    }
    const steps = (usage.outputTokens ?? 0) / reservation.sequences - 1;
    if (!alone || loadAtBinding.queueMs > 0 || steps < MIN_STEPS_IN_ONE_PIECE) return;
    const stepMs = (elapsedMs - reservation.prefillMs) / steps;
    const { decodingSequences, decodeKvTokens } = replica.load.at(nowMs);
    if (stepMs > 0) replica.latency.observeStep(Math.max(1, decodingSequences), decodeKvTokens, stepMs);
  }

  /** A prompt whose first token nobody saw, and that ended with it. */
  #observeLone(
    { replica, reservation, loadAtBinding, restoredTokens }: Placement,
    elapsedMs: number,
    usage: Usage,
  ): void {
    const { newTokens, cachedTokens } = countsOf({ reservation }, usage);
    // Bringing blocks up takes time too, and how much of it is not known.
    if (newTokens <= 0 || restoredTokens > 0 || loadAtBinding.queueMs > MAX_QUEUE_SHARE * elapsedMs) return;
    const decoding = loadAtBinding.decodingSequences;
    const stepsMs = decoding < 0.5 ? 0 : STEPS_MET * replica.latency.stepMs(decoding, loadAtBinding.decodeKvTokens);
    replica.latency.observePrefill(newTokens, cachedTokens, elapsedMs, loadAtBinding.queueMs + stepsMs);
  }

  /** Cached tokens as predicted against those reported. */
  #compareCache(
    { prefix, replica, reservation }: Pick<Placement, "prefix" | "replica" | "reservation">,
    request: RouteRequest,
    { cachedTokens, promptTokens }: Usage,
  ): void {
    const { identity } = request;
    if (cachedTokens === null || identity.hashes.length === 0) return;
    // By share where lengths are estimates: a wrong number of bytes per token must not look like a shortfall.
    const scale =
      identity.approximate && promptTokens !== null && promptTokens > 0 ? identity.promptTokens / promptTokens : 1;
    const reportedTokens = cachedTokens * scale;
    this.#fleet.index.correct(prefix, Math.floor(reportedTokens / identity.blockTokens));
    // Of several sequences some find what the others have just computed.
    if (reservation.sequences > 1) return;
    // Where a prompt is known by its text, lengths are estimates and their differences prove nothing.
    if (identity.approximate) return;
    replica.cachePrediction.observe(reservation.cachedTokens, cachedTokens, this.#fleet.cacheBlockTokens(replica));
  }

  #observeLengths({ request, reservation }: Placement, usage: Usage): void {
    const { identity, model, tenant } = request;
    if (request.generates) {
      const seen = usage.outputTokens ?? (reservation.outputTokens > 0 ? reservation.outputTokens : null);
      if (seen !== null) this.#fleet.outputLengths.observe(model, tenant, seen / reservation.sequences);
    }
    if (usage.promptTokens !== null && usage.promptTokens > 0 && identity.approximate && identity.unhashable === null)
      this.#fleet.tokenDensity.observe(model, identity.promptBytes, usage.promptTokens);
  }

  #dropPresumed(placement: Placement): void {
    if (placement.presumed === null) return;
    this.#presumed.remove(placement.presumed);
    placement.presumed = null;
  }
}

/** Whether how much there was to compute is known before the usage tells: an answer can take minutes. */
function isKnown({ request, replica }: Placement): boolean {
  return !request.identity.approximate && (replica.cachePrediction.agreement ?? 1) >= TRUSTED_AGREEMENT;
}

/** As reported, where that is of one sequence: of several it may be counted for each of them. */
function countsOf({ reservation }: Pick<Placement, "reservation">, usage: TokenCounts): PromptCounts {
  const { promptTokens, cachedTokens } = reservation.sequences === 1 ? usage : UNREPORTED;
  const cached = cachedTokens ?? reservation.cachedTokens;
  return { newTokens: (promptTokens ?? reservation.promptTokens) - cached, cachedTokens: cached };
}
