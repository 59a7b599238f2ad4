import type { Random } from "#src/determinism/random.ts";
import { toRouterError } from "#src/errors/routerError.ts";
import { modelNotFound } from "#src/errors/shared.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import { CachedTokens } from "#src/fleet/cachedTokens.ts";
import type { Eligibility } from "#src/fleet/eligibility.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { LegPool } from "#src/fleet/legCandidates.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { Reservation } from "#src/fleet/reservation.ts";
import { recordDecision } from "#src/routing/decision.ts";
import type { Decision } from "#src/routing/decision.ts";
import { ChoiceScratch } from "#src/routing/choiceScratch.ts";
import type { PricedPair } from "#src/routing/pairs/pairChooser.ts";
import type { Choice, ChoiceInput, Policy } from "#src/routing/policy.ts";
import { PriceTable } from "#src/routing/priceTable.ts";
import type { ClassTable } from "./classes.ts";
import type { LineMs } from "./line.ts";
import { loadAtBinding, type LoadAtBinding } from "./loadAtBinding.ts";
import { PairBinder, type ChosenPair } from "./pairs/pairBinder.ts";
import { dropPrefill } from "./pairs/prefillEnds.ts";
import type { PrefillLeg } from "./pairs/prefillLeg.ts";
import { Placement, type WholeReason } from "./placement.ts";
import { noReplica, promptTooLong } from "./refusals.ts";
import type { Ticket } from "./ticket.ts";

/** Back soon, where no quarantine says when a replica will be tried again. */
const NO_REPLICA_RETRY_MS = 5_000;

/** What a request would get if it were placed now. It is valid until another one is weighed. */
export interface Weighed {
  readonly policy: string;
  readonly input: ChoiceInput & { readonly candidates: readonly Replica[] };
  /** What the policy would choose; null: no single replica is to be had. */
  readonly alone: Choice | null;
  readonly pair: ChosenPair | null;
  readonly takesPair: boolean;
  /** Why it would not be split. */
  readonly whole: WholeReason | null;
  readonly eligibility: Eligibility;
}

interface PlacementParts {
  readonly replica: Replica;
  readonly reservation: Reservation;
  readonly prefill: PrefillLeg | null;
  readonly whole: WholeReason | null;
  readonly load: LoadAtBinding;
  readonly restoredTokens: number;
}

/**
 * Finds one request a replica or a pair, or says why not: eligibility from the fleet, choice by the policy, and
 * between its choice and the cheapest pair by price.
 */
export class Binder {
  readonly #fleet: Fleet;
  readonly #random: Random;
  /** Decision ids differ between two runs of the router, so that logs of both can be joined. */
  readonly #idPrefix: string;
  #decisions = 0;
  readonly #cached = new CachedTokens();
  readonly #pairs: PairBinder;
  #lineMs = new Float64Array(8);

  constructor(fleet: Fleet, random: Random) {
    this.#fleet = fleet;
    this.#random = random;
    this.#pairs = new PairBinder(fleet, random);
    this.#idPrefix = random
      .below(2 ** 32)
      .toString(16)
      .padStart(8, "0");
  }

  /**
   * Asks the policy. Without `lineMs` only replicas that have room are candidates; with it, all that take requests.
   * `wait`: some replica can serve the request, but none is a candidate now.
   */
  weigh(
    ticket: Ticket,
    policy: Policy,
    classes: ClassTable,
    lineMs: LineMs | null,
    nowMs: number,
  ): Weighed | RouterError | "wait" {
    const { request } = ticket;
    const eligibility = this.#fleet.eligible(request, ticket.excluded, nowMs);
    const legPools = this.#fleet.legs(request, ticket.excluded, eligibility.branch !== "normal", nowMs);
    if (eligibility.candidates.length === 0 && legPools.length === 0) return this.#refusal(ticket, eligibility, nowMs);
    const candidates = those(eligibility.candidates, (replica) =>
      lineMs === null ? replica.hasRoom(request.sequences, nowMs) : replica.accepts(nowMs),
    );

    const cached = this.#cached;
    cached.read(this.#fleet, request.identity, candidates);
    const expectedOutputTokens = request.generates
      ? this.#fleet.outputLengths.expect(request.model, request.tenant, request.maxOutputTokens)
      : 0;
    const input = {
      request,
      candidates,
      cachedTokens: cached.gpu,
      hostTokens: cached.host,
      diskTokens: cached.disk,
      heldTokens: cached.held,
      lineMs: lineMs === null ? null : this.#lines(candidates, lineMs),
      expectedOutputTokens,
      nowMs,
      random: this.#random,
      classTargets: classes.get(request.className),
    };
    const alone = candidates.length === 0 ? null : policy.choose(input);
    const pair = this.#pair(legPools, input, { policy, alone, lineMs });
    if (alone === null && pair === null) return "wait";
    const takesPair = pair !== null && (alone === null || pair.priced.totalMs < priceOf(alone));
    const whole = pair !== null ? "not_worth_it" : (request.unsplit ?? (legPools.length > 0 ? "no_pair" : null));
    return { policy: policy.name, input, alone, pair, takesPair, whole, eligibility };
  }

  /** Carries out what was weighed last. */
  place(ticket: Ticket, weighed: Weighed, nowMs: number): Placement | RouterError {
    const { request } = ticket;
    const { policy, input, alone, pair, takesPair, eligibility } = weighed;
    const decision = recordDecision({
      id: `${this.#idPrefix}-${(this.#decisions++).toString(36)}`,
      requestId: request.id,
      policy,
      model: request.model,
      input,
      choice: alone ?? nobodyAlone(pair!.priced),
      pair: pair?.priced ?? null,
      takesPair,
      eligibility: eligibility.branch,
      ineligible: eligibility.ineligible,
      attempt: ticket.attempt,
    });
    return takesPair && pair !== null
      ? this.#placePair(ticket, pair, decision, nowMs)
      : this.#placeAlone(ticket, weighed, decision, nowMs);
  }

  /** A pair that could be better than what a replica would do alone. */
  #pair(
    pools: readonly LegPool[],
    input: ChoiceInput,
    { policy, alone, lineMs }: { policy: Policy; alone: Choice | null; lineMs: LineMs | null },
  ): ChosenPair | null {
    // Against a choice without a price, a pair has nothing to be compared by.
    if (pools.length === 0 || (alone !== null && alone.prices === null)) return null;
    const { request, expectedOutputTokens, classTargets, nowMs } = input;
    const ceilingMs = alone === null ? Number.POSITIVE_INFINITY : priceOf(alone);
    const settings = policy.priceSettings;
    const wish = { request, expectedOutputTokens, classTargets, settings, ceilingMs, lineMs, nowMs };
    return this.#pairs.choose(pools, wish);
  }

  #placeAlone(
    ticket: Ticket,
    { input, alone, whole }: Weighed,
    decision: Decision,
    nowMs: number,
  ): Placement | RouterError {
    const { request } = ticket;
    const at = alone!.index;
    const replica = input.candidates[at]!;
    const onGpu = this.#cached.gpu[at]!;
    // What is in slower memory is brought up by the engine, not computed again.
    const cachedTokens = this.#cached.disk[at]!;
    const load = loadAtBinding(replica, nowMs);
    let reservation: Reservation;
    try {
      reservation = this.#fleet.ledger.reserve(request, replica, cachedTokens, decision.expectedOutputTokens, nowMs);
    } catch (caught) {
      return toRouterError(caught);
    }
    const restoredTokens = cachedTokens - onGpu;
    return this.#placement(
      ticket,
      decision,
      { replica, reservation, prefill: null, whole, load, restoredTokens },
      nowMs,
    );
  }

  #placePair(ticket: Ticket, pair: ChosenPair, decision: Decision, nowMs: number): Placement | RouterError {
    const { request } = ticket;
    const { ledger } = this.#fleet;
    const { decode: replica } = pair;
    let prefill: PrefillLeg | null = null;
    try {
      prefill = this.#pairs.reservePrefill(pair, request, nowMs);
      const load = loadAtBinding(replica, nowMs);
      // All of its prompt comes from the other side.
      const { promptTokens } = request.identity;
      const reservation = ledger.reserve(request, replica, promptTokens, decision.expectedOutputTokens, nowMs);
      if (request.adapter !== null) prefill.replica.adapters.used(request.adapter);
      const parts = { replica, reservation, prefill, whole: null, load, restoredTokens: 0 };
      return this.#placement(ticket, decision, parts, nowMs);
    } catch (caught) {
      if (prefill !== null) dropPrefill(prefill, this.#fleet, nowMs);
      return toRouterError(caught);
    }
  }

  #placement(ticket: Ticket, decision: Decision, parts: PlacementParts, nowMs: number): Placement {
    const { request, attempt, excluded, streamed } = ticket;
    const { replica, load, ...rest } = parts;
    if (request.adapter !== null) replica.adapters.used(request.adapter);
    return new Placement({
      ...rest,
      request,
      replica,
      prefix: this.#fleet.index.place(replica.index, request.identity, nowMs),
      decision,
      attempt,
      excluded,
      boundMs: nowMs,
      waitedMs: nowMs - ticket.sinceMs,
      queuedBehind: ticket.queuedBehind,
      loadAtBinding: load,
      streamed,
    });
  }

  #lines(candidates: readonly Replica[], lineMs: LineMs): Float64Array {
    if (this.#lineMs.length < candidates.length) this.#lineMs = new Float64Array(2 * candidates.length);
    for (const [at, replica] of candidates.entries()) this.#lineMs[at] = lineMs(replica, this.#cached.gpu[at]!);
    return this.#lineMs;
  }

  #refusal({ request }: Ticket, { branch, ineligible }: Eligibility, nowMs: number): RouterError {
    const reasons: string[] = ineligible.map(({ reason }) => reason);
    if (branch === "unknown_model") {
      // An engine that was not asked yet may be the one that has it.
      const unasked = this.#fleet.replicas().filter(({ profile }) => profile === null);
      if (unasked.length === 0) return modelNotFound(request.adapter ?? request.model);
      return noReplica(request.model, ["probing"], NO_REPLICA_RETRY_MS);
    }
    if (reasons.every((reason) => reason === "context_too_long" || reason === "adapter_unknown"))
      return promptTooLong(request.model);
    return noReplica(request.model, reasons, this.#nextTrialMs(ineligible, nowMs));
  }

  /** Until the first quarantined replica is tried again. */
  #nextTrialMs(ineligible: Eligibility["ineligible"], nowMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { replicaId } of ineligible) {
      const lifecycle = this.#fleet.byId(replicaId)?.lifecycle;
      if (lifecycle?.state === "quarantined") next = Math.min(next, lifecycle.untilMs - nowMs);
    }
    return Number.isFinite(next) ? next : NO_REPLICA_RETRY_MS;
  }
}

/** Without a new list where it would be the same. */
function those(candidates: readonly Replica[], suits: (replica: Replica) => boolean): readonly Replica[] {
  return candidates.every(suits) ? candidates : candidates.filter(suits);
}

/** Of the chosen candidate; Infinity: the policy has none. */
function priceOf({ prices, index }: Choice): number {
  return prices?.totals[index] ?? Number.POSITIVE_INFINITY;
}

/** What a decision needs of a choice where only pairs were to be had. */
function nobodyAlone({ weights }: PricedPair): Choice {
  const table = new PriceTable();
  table.weights = weights;
  return new ChoiceScratch("lowest", table);
}
