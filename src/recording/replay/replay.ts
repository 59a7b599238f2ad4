import { SeededRandom } from "#src/determinism/random.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { Scheduler, type SchedulerSettings } from "#src/scheduler/scheduler.ts";
import type { Ticket } from "#src/scheduler/ticket.ts";
import type { InputRecord, RecordingRecord, Result, Section } from "../format/records.ts";
import type { Recording } from "../read/recording.ts";
import { compared, type Difference } from "./difference.ts";
import { FleetInputs, isFleetInput } from "./inputs.ts";
import { RecordStream } from "./recordStream.ts";

export interface ReplayOptions {
  /** What the scheduler goes by, from the recorded part of a configuration. Called again after each reload. */
  readonly settings: (recorded: unknown) => SchedulerSettings;
  /**
   * Called before a decision is looked at; `made` is null where none was made. For those who decide otherwise and want to
   * know what was done.
   */
  readonly onDecision?: (recorded: Result, made: Placement | RouterError | null, ticket: number) => void;
  /** Called now and then. */
  readonly onProgress?: (records: number) => void;
  /** False: decisions need not be the recorded ones. */
  readonly isExact?: boolean;
}

export interface ReplayReport {
  readonly records: number;
  readonly requests: number;
  /** Recorded placements and refusals. */
  readonly decisions: number;
  readonly refusals: number;
  /** Of the decisions, those that could be checked to the byte, and were found equal. */
  readonly equal: number;
  /** Those where what was known before is not known any more, so that they need not be equal. */
  readonly unchecked: number;
  /** The first one, at which the replay ended. */
  readonly difference: Difference | null;
  /** Wall clock of the recording's beginning, and how long it is. */
  readonly startedMs: number;
  /** The same on the recorded router's clock. */
  readonly firstMs: number;
  readonly seconds: number;
}

/** How many records between two reports of progress. */
const PROGRESS_RECORDS = 10_000;

/**
 * Makes recorded decisions again: a fleet and a scheduler of their own get the recorded inputs in their order and at
 * their times. What they decide, and whom they tell, comes in the recorded order too, or it is a difference.
 */
export class Replay {
  readonly #recording: Recording;
  readonly #options: ReplayOptions;
  readonly #stream: RecordStream;
  #fleet: Fleet;
  #inputs: FleetInputs;
  #scheduler: Scheduler;
  #tickets = new Map<number, Ticket>();
  #places = new Map<number, Placement>();
  /** What was decided here and is not recorded so far, or recorded and not decided here. Only where exactness ended. */
  #ahead = new Map<number, Placement | RouterError>();
  #behind = new Map<number, Result>();
  #depth = 0;
  #isExact: boolean;
  #begun = false;
  #difference: Difference | null = null;
  #requests = 0;
  #decisions = 0;
  #refusals = 0;
  #equal = 0;
  #unchecked = 0;
  #startedMs = 0;
  #firstMs = 0;
  #nowMs = 0;

  constructor(recording: Recording, options: ReplayOptions) {
    this.#recording = recording;
    this.#options = options;
    this.#stream = new RecordStream(recording.records());
    this.#isExact = (options.isExact ?? true) && recording.isFromStart;
    this.#fleet = new Fleet({ maxReplicas: recording.first.maxReplicas });
    this.#inputs = new FleetInputs(this.#fleet);
    this.#scheduler = this.#newScheduler();
  }

  /** As it is after the last record. */
  get fleet(): Fleet {
    return this.#fleet;
  }

  run(): ReplayReport {
    const stream = this.#stream;
    for (let record = stream.take(); record !== null; record = stream.take()) {
      this.#take(record);
      if (this.#difference !== null) break;
      if (stream.taken % PROGRESS_RECORDS === 0) this.#options.onProgress?.(stream.taken);
    }
    const records = stream.taken;
    stream.close();
    return {
      records,
      requests: this.#requests,
      decisions: this.#decisions,
      refusals: this.#refusals,
      equal: this.#equal,
      unchecked: this.#unchecked,
      difference: this.#difference,
      startedMs: this.#startedMs,
      firstMs: this.#firstMs,
      seconds: (this.#nowMs - this.#firstMs) / 1000,
    };
  }

  #take(record: RecordingRecord): void {
    if (record.kind === "section") this.#section(record.section);
    else if (record.kind === "settled") this.#recorded(record.ticket, record.result);
    else if (record.kind === "lost") {
      if (this.#isExact) this.#differs("a placement was lost", `place ${record.place}`, "nothing of the kind");
    } else this.#input(record);
  }

  #section(section: Section): void {
    const isFirst = !this.#begun;
    if (isFirst) {
      this.#begun = true;
      this.#startedMs = section.wallMs;
      this.#firstMs = this.#nowMs = section.clockMs;
      this.#configure(section.settings);
    }
    const follows = section.dropped === 0 && !isFirst;
    if (follows || (isFirst && this.#recording.isFromStart)) return;
    if (section.dropped > 0)
      this.#recording.remarks.push(
        `${section.dropped} records are missing ${((section.clockMs - this.#firstMs) / 1000).toFixed(1)} s in: ` +
          "decisions after that cannot be checked",
      );
    this.#isExact = false;
    this.#fleet = new Fleet({ maxReplicas: this.#recording.first.maxReplicas });
    this.#inputs = new FleetInputs(this.#fleet);
    this.#scheduler = this.#newScheduler();
    this.#tickets = new Map();
    this.#places = new Map();
    this.#ahead = new Map();
    this.#behind = new Map();
    this.#configure(section.settings);
    this.#inputs.restate(section);
  }

  #input(input: InputRecord): void {
    if ("nowMs" in input) this.#nowMs = Math.max(this.#nowMs, input.nowMs);
    if (isFleetInput(input)) {
      this.#inputs.apply(input, this.#isExact);
      return;
    }
    const scheduler = this.#scheduler;
    switch (input.kind) {
      case "submit":
        return this.#submit(input);
      case "cancel": {
        const ticket = this.#tickets.get(input.ticket);
        this.#tickets.delete(input.ticket);
        if (ticket !== undefined) scheduler.cancel(ticket, input.nowMs);
        return;
      }
      case "firstToken":
        return this.#ofPlace(input.place, (place) => scheduler.firstToken(place, input.nowMs));
      case "progress":
        return this.#ofPlace(input.place, (place) => scheduler.progress(place, input.outputTokens, input.nowMs));
      case "prefilled":
        return this.#ofPlace(input.place, (place) => scheduler.prefilled(place, input.usage, input.nowMs));
      case "heldUp":
        return this.#ofPlace(input.place, (place) => scheduler.heldUp(place));
      case "finish":
        return this.#ofPlace(input.place, (place) => {
          this.#places.delete(input.place);
          scheduler.finish(place, input.outcome, input.nowMs);
        });
      case "wake":
        return scheduler.tick(input.nowMs);
      case "shutdown":
        return scheduler.shutdown();
      case "configure":
        return this.#configure(input.settings);
    }
  }

  #submit({ ticket, request, nowMs, attempt, sinceMs, excluded, streamed }: Extract<InputRecord, { kind: "submit" }>) {
    if (attempt === 1) this.#requests++;
    let settled = false;
    const made = this.#scheduler.submit(
      request,
      nowMs,
      (result) => {
        settled = true;
        this.#tickets.delete(ticket);
        this.#made(ticket, result);
      },
      {
        attempt,
        sinceMs,
        excluded: new Set(excluded),
        streamed,
        onLost: () => this.#lost(),
      },
    );
    if (!settled) this.#tickets.set(ticket, made);
  }

  /** Something was decided here; the record of it should be the next one, and then what it led to. */
  #made(ticket: number, result: Placement | RouterError): void {
    const { next } = this.#stream;
    if (next?.kind === "settled" && next.ticket === ticket) {
      this.#stream.take();
      this.#match(ticket, next.result, result);
    } else if (this.#isExact) {
      if (next !== null) this.#differs("a decision was made", `no decision on request ${ticket} here`, named(result));
    } else {
      const recorded = this.#behind.get(ticket);
      this.#behind.delete(ticket);
      if (recorded === undefined) this.#ahead.set(ticket, result);
      else this.#match(ticket, recorded, result);
    }
    this.#nested();
  }

  /** A recorded decision that nothing here came to just now. */
  #recorded(ticket: number, result: Result): void {
    if (this.#isExact) {
      this.#differs("no decision was made", resultText(result), "nothing");
      return;
    }
    const made = this.#ahead.get(ticket);
    this.#ahead.delete(ticket);
    if (made !== undefined) this.#match(ticket, result, made);
    else {
      this.#behind.set(ticket, result);
      this.#options.onDecision?.(result, null, ticket);
    }
  }

  #match(ticket: number, recorded: Result, made: Placement | RouterError): void {
    this.#decisions++;
    if (recorded.placed === null) this.#refusals++;
    this.#options.onDecision?.(recorded, made, ticket);
    if (recorded.placed !== null && !(made instanceof RouterError)) this.#places.set(recorded.placed, made);
    if (!this.#isExact) {
      this.#unchecked++;
      return;
    }
    const difference = compared(recorded, made, this.#nowMs - this.#firstMs);
    if (difference === null) this.#equal++;
    else this.#difference ??= difference;
  }

  #lost(): void {
    const { next } = this.#stream;
    if (next?.kind === "lost") this.#stream.take();
    else if (this.#isExact && next !== null) this.#differs("a placement was lost here", "nothing of the kind", "");
    this.#nested();
  }

  /** What those did who were told. */
  #nested(): void {
    const stream = this.#stream;
    this.#depth++;
    while (this.#difference === null && stream.next !== null && isNested(stream.next, this.#depth))
      this.#input(stream.take() as InputRecord);
    this.#depth--;
  }

  #ofPlace(number: number, run: (place: Placement) => void): void {
    const place = this.#places.get(number);
    // Placed before the reading began, or here not placed at all.
    if (place !== undefined) run(place);
  }

  #configure(recorded: unknown): void {
    this.#scheduler.configure(this.#options.settings(recorded));
  }

  #newScheduler(): Scheduler {
    const random = new SeededRandom(this.#recording.first.seed);
    return new Scheduler({ fleet: this.#fleet, random, policyFor: notConfigured });
  }

  #differs(what: string, recorded: string, made: string): void {
    this.#difference ??= { atMs: this.#nowMs - this.#firstMs, what, recorded, made, fields: [] };
  }
}

function notConfigured(): never {
  throw new Error("a recording begins with settings");
}

function isNested(record: RecordingRecord, depth: number): boolean {
  return "depth" in record && record.depth === depth;
}

function named(result: Placement | RouterError): string {
  return result instanceof RouterError ? `refused with ${result.code}` : `placed on ${result.replica.id}`;
}

function resultText(result: Result): string {
  if (result.placed === null) return `refused with ${result.refused.code}`;
  const { rows, chosen } = result.decision;
  return `placed on ${rows[chosen]!.replicaId}`;
}
