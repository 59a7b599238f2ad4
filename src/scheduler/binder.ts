import type { Random } from "#src/determinism/random.ts";
import { toRouterError } from "#src/errors/routerError.ts";
import { modelNotFound } from "#src/errors/shared.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import { CachedTokens } from "#src/fleet/cachedTokens.ts";
import type { Eligibility } from "#src/fleet/eligibility.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { Reservation } from "#src/fleet/reservation.ts";
import { recordDecision } from "#src/routing/decision.ts";
import type { Decision } from "#src/routing/decision.ts";
import type { ChoiceInput, Policy } from "#src/routing/policy.ts";
import type { ClassTable } from "./classes.ts";
import { Placement } from "./placement.ts";
import { noReplica, promptTooLong } from "./refusals.ts";
import type { Ticket } from "./ticket.ts";

/** Back soon, where no quarantine says when a replica will be tried again. */
const NO_REPLICA_RETRY_MS = 5_000;

/** `wait`: some replica can serve the request, but none has room now. */
export type Binding = Placement | RouterError | "wait";

/** Binds one request to one replica, or says why not: eligibility from the fleet, choice by the policy. */
export class Binder {
  readonly #fleet: Fleet;
  readonly #random: Random;
  /** Decision ids differ between two runs of the router, so that logs of both can be joined. */
  readonly #idPrefix: string;
  #decisions = 0;
  readonly #cached = new CachedTokens();

  constructor(fleet: Fleet, random: Random) {
    this.#fleet = fleet;
    this.#random = random;
    this.#idPrefix = random
      .below(2 ** 32)
      .toString(16)
      .padStart(8, "0");
  }

  bind(ticket: Ticket, policy: Policy, classes: ClassTable, nowMs: number): Binding {
    const { request } = ticket;
    const eligibility = this.#fleet.eligible(request, ticket.excluded, nowMs);
    if (eligibility.candidates.length === 0) return this.#refusal(ticket, eligibility, nowMs);
    const candidates = withRoom(eligibility.candidates, request.sequences, nowMs);
    if (candidates.length === 0) return "wait";

    const cached = this.#cached;
    cached.read(this.#fleet, request.identity, candidates);
    const expectedOutputTokens = request.generates
      ? this.#fleet.outputLengths.expect(request.model, request.tenant, request.maxOutputTokens)
      : 0;
    const input: ChoiceInput = {
      request,
      candidates,
      cachedTokens: cached.gpu,
      hostTokens: cached.host,
      diskTokens: cached.disk,
      heldTokens: cached.held,
      expectedOutputTokens,
      nowMs,
      random: this.#random,
      classTargets: classes.get(request.className),
    };
    const choice = policy.choose(input);
    const decision = recordDecision({
      id: `${this.#idPrefix}-${(this.#decisions++).toString(36)}`,
      requestId: request.id,
      policy: policy.name,
      model: request.model,
      input,
      choice,
      eligibility: eligibility.branch,
      ineligible: eligibility.ineligible,
      attempt: ticket.attempt,
    });

    return this.#place(ticket, candidates[choice.index]!, choice.index, decision, nowMs);
  }

  /** @param at place of the replica among the candidates */
  #place(ticket: Ticket, replica: Replica, at: number, decision: Decision, nowMs: number): Binding {
    const { request } = ticket;
    const onGpu = this.#cached.gpu[at]!;
    // What is in slower memory is brought up by the engine, not computed again.
    const cachedTokens = this.#cached.disk[at]!;
    const { ledger, index } = this.#fleet;
    const { pendingPrefillMs, decodingSequences, decodeKvTokens } = replica.load.at(nowMs);
    let reservation: Reservation;
    try {
      reservation = ledger.reserve(request, replica, cachedTokens, decision.expectedOutputTokens, nowMs);
    } catch (caught) {
      return toRouterError(caught);
    }
    if (request.adapter !== null) replica.adapters.used(request.adapter);
    return new Placement({
      request,
      replica,
      reservation,
      prefix: index.place(replica.index, request.identity, nowMs),
      decision,
      attempt: ticket.attempt,
      excluded: ticket.excluded,
      boundMs: nowMs,
      waitedMs: nowMs - ticket.sinceMs,
      loadAtBinding: { queueMs: pendingPrefillMs, decodingSequences, decodeKvTokens },
      restoredTokens: cachedTokens - onGpu,
      streamed: ticket.streamed,
    });
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

function withRoom(candidates: readonly Replica[], sequences: number, nowMs: number): readonly Replica[] {
  return candidates.every((replica) => replica.hasRoom(sequences, nowMs))
    ? candidates
    : candidates.filter((replica) => replica.hasRoom(sequences, nowMs));
}
