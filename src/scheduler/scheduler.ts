import type { Random } from "#src/determinism/random.ts";
import { RouterError, toRouterError } from "#src/errors/routerError.ts";
import { shuttingDown } from "#src/errors/shared.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { LinkSettings } from "#src/fleet/links/links.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Policy } from "#src/routing/policy.ts";
import { Admission } from "./admission.ts";
import { Binder } from "./binder.ts";
import { ClassTable, DEFAULT_CLASS } from "./classes.ts";
import type { Newcomer } from "./flows/shares.ts";
import { Feedback } from "./feedback.ts";
import { bindInOrder } from "./inOrder.ts";
import { serveHomeless, serveReplica } from "./lateBinding.ts";
import type { Offer } from "./lateBinding.ts";
import { LivePlacements } from "./livePlacements.ts";
import type { AttemptOutcome, Usage } from "./outcome.ts";
import { overdue } from "./overdue.ts";
import type { Placement } from "./placement.ts";
import { QUEUE_LIMITS } from "./queueLimits.ts";
import type { QueueLimits } from "./queueLimits.ts";
import { rankOf } from "./queueOrder.ts";
import { waitingByClass, waitingInOrder } from "./queueReport.ts";
import type { WaitingClass, WaitingRequest } from "./queueReport.ts";
import { queueFull } from "./refusals.ts";
import { isReady, readyInMs } from "./readiness.ts";
import { start } from "./start.ts";
import { UNOBSERVED } from "./schedulerObserver.ts";
import type { SchedulerObserver } from "./schedulerObserver.ts";
import { Ticket } from "./ticket.ts";
import type { Settle, SubmitOptions } from "./ticket.ts";
import { WaitingRoom } from "./waitingRoom.ts";

/** While somebody waits, what no call announces (a hold that ends, a replica that came or went) is looked at this often. */
const RECHECK_MS = 50;
/** Not sooner than this, however soon a replica is thought to be ready. */
const LEAST_WAKE_MS = 5;
const EQUAL_WEIGHTS = (): number => 1;
/** While a replica does not answer, what it holds up is looked at this often. */
const SILENCE_CHECK_MS = 1_000;

/** What is known of a request before its body is read. */
export type Sender = Pick<RouteRequest, "className" | "tenant">;
const ANYBODY: Sender = { className: DEFAULT_CLASS, tenant: "" };

/** What a reload may change. */
export interface SchedulerSettings {
  /** The policy of a model. Policies keep state, so the same one must come back each time. */
  readonly policyFor: (model: string) => Policy;
  readonly classes?: ClassTable;
  readonly limits?: QueueLimits;
  /** Weight of a tenant against others of its class; 1 where absent. */
  readonly tenantWeight?: (tenant: string) => number;
  /** What the operator says of the ways that KV takes. */
  readonly links?: LinkSettings;
}

export interface SchedulerOptions extends SchedulerSettings {
  readonly fleet: Fleet;
  readonly random: Random;
  readonly observer?: SchedulerObserver;
}

/**
 * Binds requests to replicas: at once while a replica that can serve them has room, else from a bounded queue as soon
 * as one has. Pure: time comes with each call, and nothing happens between calls, so somebody must call `tick` by
 * `nextWakeMs` at the latest.
 */
export class Scheduler {
  readonly #fleet: Fleet;
  readonly #binder: Binder;
  readonly #feedback: Feedback;
  readonly #admission: Admission;
  readonly #observer: SchedulerObserver;
  readonly #room: WaitingRoom;
  readonly #live = new LivePlacements();
  /** Replicas that do not answer. */
  readonly #silent = new Set<Replica>();
  #policyFor: (model: string) => Policy;
  #classes: ClassTable;
  #limits: QueueLimits;
  #sequence = 0;
  #lastPassMs = 0;
  /** When the first of the replicas that somebody waits for should be ready. */
  #readyMs = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(options: SchedulerOptions) {
    this.#fleet = options.fleet;
    this.#binder = new Binder(options.fleet, options.random);
    this.#feedback = new Feedback(options.fleet);
    this.#observer = options.observer ?? UNOBSERVED;
    this.#policyFor = options.policyFor;
    this.#classes = options.classes ?? new ClassTable();
    this.#limits = options.limits ?? QUEUE_LIMITS;
    const settings = { classes: this.#classes, limits: this.#limits };
    this.#room = new WaitingRoom({ ...settings, tenantWeight: options.tenantWeight ?? EQUAL_WEIGHTS });
    this.#admission = new Admission(options.fleet, this.#room, settings);
    options.fleet.links.configure(options.links);
    options.fleet.onChange(({ kind, replica }) => {
      if (kind === "removed" || kind === "restarted") this.#live.replicaLost(replica);
      if (kind === "lifecycle" && replica.lifecycle.state === "unreachable") this.#silent.add(replica);
      else if (kind === "lifecycle" || kind === "removed") this.#silent.delete(replica);
    });
  }

  /** Those that wait keep their places. */
  configure(settings: SchedulerSettings): void {
    this.#policyFor = settings.policyFor;
    this.#classes = settings.classes ?? new ClassTable();
    this.#limits = settings.limits ?? QUEUE_LIMITS;
    const shared = { classes: this.#classes, limits: this.#limits };
    this.#room.configure({ ...shared, tenantWeight: settings.tenantWeight ?? EQUAL_WEIGHTS });
    this.#admission.configure(shared);
    this.#fleet.links.configure(settings.links);
  }

  get classes(): ClassTable {
    return this.#classes;
  }

  /** How many wait in the router, and the size of their bodies. */
  get depth(): { readonly requests: number; readonly bytes: number } {
    return { requests: this.#room.requests, bytes: this.#room.bytes };
  }

  /** Placements that have not ended. */
  get inFlight(): number {
    return this.#live.size;
  }

  /** Who waits, by model and class. */
  waiting(nowMs: number): readonly WaitingClass[] {
    return waitingByClass(this.#room, (request) => this.#admission.expectedMs(request, nowMs), nowMs);
  }

  /** Who waits, in the order of service as it stands now, model by model. */
  queue(nowMs: number): readonly WaitingRequest[] {
    return this.#room.models().flatMap((model) => waitingInOrder(this.#room.shareOf(model), nowMs));
  }

  /**
   * Whether a request of this size has a chance, asked before its body is read. Null: it has. An error: every replica
   * is full and so is the queue, whatever the model, and nobody who waits would give way to it.
   */
  admit(bodyBytes: number, nowMs: number, sender: Sender = ANYBODY): RouterError | null {
    const error = this.#admissionError({ ...sender, bodyBytes }, nowMs);
    if (error !== null) this.#observer.refused(null, error);
    return error;
  }

  /** `settle` is called exactly once, perhaps before this returns, and not at all after a `cancel` that came first. */
  submit(request: RouteRequest, nowMs: number, settle: Settle, options: SubmitOptions = {}): Ticket {
    const ticket = new Ticket(request, nowMs, this.#sequence++, settle, options);
    if (this.#closed) this.#refuse(ticket, shuttingDown(), nowMs);
    else if (request.deadlineMs <= nowMs) this.#refuse(ticket, this.#admission.expired(ticket, nowMs), nowMs);
    else if (this.#bindsLate(request.model)) {
      if (this.#offer(ticket, nowMs) !== "decided") this.#enqueue(ticket, nowMs);
    } else if (this.#room.ofModel(request.model) > 0) this.#queueBehindOthers(ticket, nowMs);
    else if (this.#tryBinding(ticket, nowMs) === "wait") this.#enqueue(ticket, nowMs);
    ticket.settle();
    return ticket;
  }

  /** The request is given up, at whatever point it is; no `settle` follows. */
  cancel(ticket: Ticket, nowMs: number): void {
    this.#leaves(ticket, nowMs);
    ticket.cancel();
    const { result } = ticket;
    if (result !== null && !(result instanceof RouterError)) this.finish(result, { kind: "client_gone" }, nowMs);
  }

  /** The prefill leg of a pair was answered; `usage`: what its engine says of the prompt. */
  prefilled(placement: Placement, usage: Usage | null, nowMs: number): void {
    this.#feedback.prefilled(placement, usage, nowMs);
    this.#observer.prefilled?.(placement, nowMs);
    // Its slot is free, and only KV remains.
    if (placement.prefill !== null) this.#served(placement.prefill.replica, nowMs);
  }

  /** The first content of a streamed answer came. */
  firstToken(placement: Placement, nowMs: number): void {
    this.#feedback.firstToken(placement, nowMs);
    this.#served(placement.replica, nowMs);
  }

  /** `outputTokens` so far, all sequences together. Not needed for every token. */
  progress(placement: Placement, outputTokens: number, nowMs: number): void {
    this.#feedback.progress(placement, outputTokens, nowMs);
  }

  /** The client reads more slowly than the engine writes: the times that follow are not the engine's. */
  heldUp(placement: Placement): void {
    this.#feedback.heldUp(placement);
  }

  /** However the placement ended. Later calls do nothing. */
  finish(placement: Placement, outcome: AttemptOutcome, nowMs: number): void {
    if (!this.#feedback.finish(placement, outcome, nowMs)) return;
    this.#live.remove(placement);
    this.#admission.ended(placement, outcome, nowMs);
    this.#observer.finished(placement, outcome, nowMs);
    this.#served(placement.replica, nowMs);
    if (placement.prefill !== null) this.#served(placement.prefill.replica, nowMs);
  }

  /** Times out who waited too long, looks for room for the others, and gives up what silent replicas hold up. */
  tick(nowMs: number): void {
    this.#lastPassMs = nowMs;
    for (const replica of this.#silent)
      this.#live.replicaSilent(replica, (placement) => overdue(placement, nowMs) && this.#hasOther(placement, nowMs));
    for (let ticket = this.#room.expired(nowMs); ticket !== null; ticket = this.#room.expired(nowMs)) {
      this.#refuse(ticket, this.#admission.expired(ticket, nowMs), nowMs);
      ticket.settle();
    }
    // Also without room: whose replicas are all gone must hear of it.
    for (const model of this.#room.models()) {
      if (this.#bindsLate(model)) this.#serveAll(model, nowMs);
      else this.#bindModel(model, nowMs, () => true);
    }
  }

  /** When `tick` must be called at the latest; null: not while nobody waits and every replica answers. */
  nextWakeMs(): number | null {
    const expiryMs = this.#room.nextExpiryMs;
    if (expiryMs !== null)
      return Math.min(
        expiryMs,
        this.#lastPassMs + RECHECK_MS,
        Math.max(this.#lastPassMs + LEAST_WAKE_MS, this.#readyMs),
      );
    return this.#silent.size > 0 && this.#live.size > 0 ? this.#lastPassMs + SILENCE_CHECK_MS : null;
  }

  /** Nobody is bound any more; those that wait are told to come back. What runs, runs on. */
  shutdown(): void {
    this.#closed = true;
    const tickets = this.#room.tickets();
    for (const ticket of tickets) this.#refuse(ticket, shuttingDown(), this.#lastPassMs);
    for (const ticket of tickets) ticket.settle();
  }

  #admissionError(newcomer: Newcomer, nowMs: number): RouterError | null {
    if (this.#closed) return shuttingDown();
    const bound = this.#room.boundHit(newcomer.bodyBytes, this.#limits);
    const isTaking = (replica: Replica): boolean => takes(replica, nowMs) && !this.#room.awaits(replica);
    if (bound === null || this.#fleet.replicas().some(isTaking)) return null;
    if (this.#room.givesWay(newcomer) !== null) return null;
    return queueFull(bound, this.#admission.retryAnyMs(nowMs));
  }

  #queueBehindOthers(ticket: Ticket, nowMs: number): void {
    const { model, bodyBytes } = ticket.request;
    if (this.#room.boundHit(bodyBytes, this.#limits) !== null) this.#bindModel(model, nowMs);
    this.#enqueue(ticket, nowMs);
    this.#bindModel(model, nowMs);
  }

  #enqueue(ticket: Ticket, nowMs: number): void {
    if (this.#room.requests === 0) this.#lastPassMs = nowMs;
    const refused = this.#admission.enter(ticket, nowMs);
    for (const { ticket: one, error } of refused) this.#refuse(one, error, nowMs);
    if (ticket.waiting) this.#observer.queued(ticket.request);
    for (const { ticket: one } of refused) one.settle();
  }

  #bindsLate(model: string): boolean {
    return this.#policyFor(model).bindsLate ?? false;
  }

  /** A replica has got further with what it has. */
  #served(replica: Replica, nowMs: number): void {
    for (const model of this.#room.models()) {
      if (this.#bindsLate(model)) this.#serve(model, replica, nowMs);
      else this.#bindModel(model, nowMs);
    }
  }

  #serve(model: string, replica: Replica, nowMs: number): void {
    const decided = serveReplica(this.#room, model, replica, (ticket) => this.#offer(ticket, nowMs), nowMs);
    if (this.#room.lineFor(model, replica) !== null)
      this.#readyMs = Math.min(this.#readyMs, nowMs + readyInMs(replica, nowMs));
    for (const ticket of decided) ticket.settle();
  }

  #serveAll(model: string, nowMs: number): void {
    this.#feedback.presumeFirstTokens(nowMs);
    this.#readyMs = Number.POSITIVE_INFINITY;
    const replicas = new Set(this.#fleet.pool(model));
    for (const [replica] of this.#room.linesByReplica(model)) replicas.add(replica);
    for (const replica of replicas) this.#serve(model, replica, nowMs);
    for (const line of this.#room.lines(model)) {
      if (line.first?.value.home !== null) continue;
      for (const ticket of serveHomeless(line, (each) => this.#offer(each, nowMs))) ticket.settle();
    }
  }

  /** Places a request if the replica that suits it best is ready and it is its turn there; else it waits for that one. */
  #offer(ticket: Ticket, nowMs: number): Offer {
    this.#feedback.presumeFirstTokens(nowMs);
    const { request } = ticket;
    const { model, arrivedMs } = request;
    try {
      const weighed = this.#binder.weigh(
        ticket,
        this.#policyFor(model),
        this.#classes,
        (replica, cachedTokens) => {
          const line = this.#room.lineFor(model, replica);
          if (line === null) return 0;
          const workMs = priorWorkMs(ticket, replica, cachedTokens);
          return line.workMsBefore(this.#room.standingOf(request), rankOf(arrivedMs, workMs), workMs, ticket);
        },
        nowMs,
      );
      if (weighed instanceof RouterError) {
        this.#refuse(ticket, weighed, nowMs);
        return "decided";
      }
      if (weighed === "wait") return this.#awaits(ticket, null, 0, rankOf(arrivedMs, 0));
      const { replica, cachedTokens, workMs, startsInMs, lineMs } = start(weighed, nowMs);
      ticket.startsInMs = lineMs + startsInMs;
      const line = this.#room.lineFor(model, replica);
      const rank = rankOf(arrivedMs, priorWorkMs(ticket, replica, cachedTokens));
      const isNext =
        line === null || line.first?.value === ticket || line.wouldLead(this.#room.standingOf(request), rank);
      if (!isNext || !isReady(replica, request.sequences, startsInMs, nowMs))
        return this.#awaits(ticket, replica, workMs, rank);
      this.#placed(ticket, this.#binder.place(ticket, weighed, nowMs), nowMs);
      return "decided";
    } catch (caught) {
      this.#refuse(ticket, toRouterError(caught), nowMs);
      return "decided";
    }
  }

  /** What it waits for from now on. */
  #awaits(ticket: Ticket, home: Replica | null, workMs: number, rank: number): Replica | null {
    if (ticket.waiting) this.#room.move(ticket, home, workMs, rank);
    else {
      ticket.home = home;
      ticket.workMs = workMs;
      ticket.rank = rank;
    }
    return home;
  }

  #bindModel(
    model: string,
    nowMs: number,
    mayFit = () => this.#fleet.pool(model).some((one) => takes(one, nowMs)),
  ): void {
    const decided = bindInOrder(this.#room, model, mayFit, (ticket) => this.#tryBinding(ticket, nowMs));
    // Only now: whoever is told may call back, and then everything must be in its place.
    for (const ticket of decided) ticket.settle();
  }

  #tryBinding(ticket: Ticket, nowMs: number): "decided" | "wait" {
    this.#feedback.presumeFirstTokens(nowMs);
    const policy = this.#policyFor(ticket.request.model);
    let binding: Placement | RouterError;
    try {
      const weighed = this.#binder.weigh(ticket, policy, this.#classes, null, nowMs);
      if (weighed === "wait") return "wait";
      binding = weighed instanceof RouterError ? weighed : this.#binder.place(ticket, weighed, nowMs);
    } catch (caught) {
      // Of this request only: whoever else's call led here must not suffer from it.
      binding = toRouterError(caught);
    }
    this.#placed(ticket, binding, nowMs);
    return "decided";
  }

  #placed(ticket: Ticket, binding: Placement | RouterError, nowMs: number): void {
    if (binding instanceof RouterError) {
      this.#refuse(ticket, binding, nowMs);
      return;
    }
    this.#admission.placed(binding, nowMs);
    this.#leaves(ticket, nowMs);
    ticket.result = binding;
    this.#live.add(binding, ticket.onLost);
    this.#feedback.placed(binding);
    this.#observer.bound(binding);
  }

  /** Whether another replica could take it now; to a silent one that is the last, a request is better off waiting. */
  #hasOther({ request, excluded }: Placement, nowMs: number): boolean {
    const { branch, candidates } = this.#fleet.eligible(request, excluded, nowMs);
    if (branch === "normal" && candidates.some((replica) => replica.hasRoom(request.sequences, nowMs))) return true;
    const hasRoom = (replica: Replica): boolean => replica.hasRoom(1, nowMs);
    const pools = this.#fleet.legs(request, excluded, false, nowMs);
    return pools.some(({ prefill, decode }) => prefill.some(hasRoom) && decode.some(hasRoom));
  }

  /** Decides, but does not tell yet. */
  #refuse(ticket: Ticket, error: RouterError, nowMs: number): void {
    this.#leaves(ticket, nowMs);
    ticket.result = error;
    this.#observer.refused(ticket.request, error);
  }

  #leaves(ticket: Ticket, nowMs: number): void {
    if (!ticket.waiting) return;
    this.#room.remove(ticket);
    this.#admission.left(ticket.request.model, nowMs);
  }
}

function priorWorkMs({ request }: Ticket, { latency }: Replica, cachedTokens: number): number {
  return latency.priorPrefillMs(request.identity.promptTokens - cachedTokens, cachedTokens);
}

function takes(replica: Replica, nowMs: number): boolean {
  return replica.health.routable(nowMs) && replica.hasRoom(1, nowMs);
}
