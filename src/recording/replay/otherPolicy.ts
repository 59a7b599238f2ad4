import { SeededRandom } from "#src/determinism/random.ts";
import type { Choice, ChoiceInput, Policy } from "#src/routing/policy.ts";
import { Pricer } from "#src/routing/price.ts";
import type { PriceSettings } from "#src/routing/priceSettings.ts";
import { PriceTable } from "#src/routing/priceTable.ts";
import type { RecordingRecord } from "../format/records.ts";

/** Where another policy would have chosen another replica. */
export interface Disagreement {
  readonly atMs: number;
  readonly request: number;
  readonly recorded: string;
  readonly other: string;
  /** What the choices cost by the price, in milliseconds, all terms weighted. */
  readonly recordedMs: number;
  readonly otherMs: number;
}

/** Kept one by one; the sums count all. */
const MAX_KEPT = 100_000;

/** Replicas that recorded requests were placed on, by ticket. */
export function recordedChoices(records: Iterable<RecordingRecord>): ReadonlyMap<number, string> {
  const chosen = new Map<number, string>();
  for (const record of records) {
    if (record.kind !== "settled" || record.result.placed === null) continue;
    const { rows, chosen: row } = record.result.decision;
    chosen.set(record.ticket, rows[row]!.replicaId);
  }
  return chosen;
}

/**
 * What another policy would have chosen at each recorded decision, given all that really happened before: the recorded
 * choice is carried out whatever it says, so that the recorded outcomes stay true. Only a simulation can say what would
 * have followed from its own choices.
 */
export class OtherPolicy {
  readonly #recorded: ReadonlyMap<number, string>;
  readonly #pricer: Pricer;
  readonly #prices = new PriceTable();
  /** Its draws must not be those of the recorded policy. */
  readonly #random = new SeededRandom(1);
  readonly #open = new Map<number, Disagreement | null>();
  readonly disagreements: Disagreement[] = [];
  agreed = 0;
  disagreed = 0;
  /** Prices of the other choices less those of the recorded ones, together; those with an infinite one left out. */
  dearerMs = 0;
  /** Decisions whose recorded replica was no candidate here: what is known is not what was known. */
  unlike = 0;

  constructor(recorded: ReadonlyMap<number, string>, prices: PriceSettings) {
    this.#recorded = recorded;
    this.#pricer = new Pricer(prices);
  }

  /** A policy that is asked and not followed. */
  following(policy: Policy): Policy {
    return {
      name: policy.name,
      bindsLate: policy.bindsLate ?? false,
      choose: (input) => this.#choose(policy, input),
    };
  }

  /** The request was placed: what was said of it last is what counts. */
  decided(ticket: number): void {
    const said = this.#open.get(ticket);
    this.#open.delete(ticket);
    if (said === undefined) return;
    if (said === null) {
      this.agreed++;
      return;
    }
    this.disagreed++;
    const dearerMs = said.otherMs - said.recordedMs;
    if (Number.isFinite(dearerMs)) this.dearerMs += dearerMs;
    if (this.disagreements.length < MAX_KEPT) this.disagreements.push(said);
  }

  #choose(policy: Policy, input: ChoiceInput): Choice {
    const own = policy.choose({ ...input, random: this.#random });
    const ticket = ticketOf(input.request.id);
    const replicaId = this.#recorded.get(ticket);
    const at = input.candidates.findIndex(({ id }) => id === replicaId);
    if (at < 0) {
      this.unlike++;
      return own;
    }
    if (at === own.index) {
      this.#open.set(ticket, null);
      return own;
    }
    this.#pricer.price(input, this.#prices);
    const { totals } = this.#prices;
    this.#open.set(ticket, {
      atMs: input.nowMs,
      request: ticket,
      recorded: input.candidates[at]!.id,
      other: input.candidates[own.index]!.id,
      recordedMs: totals[at]!,
      otherMs: totals[own.index]!,
    });
    const { branch, tied, draw, scores, best, prices } = own;
    return { index: at, branch, tied, draw, scores, best, prices };
  }
}

/** Requests are given ids of their tickets' numbers when they are read. */
function ticketOf(requestId: string): number {
  return Number(requestId.slice(requestId.lastIndexOf("-") + 1));
}
