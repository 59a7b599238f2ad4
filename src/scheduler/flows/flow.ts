import type { Queued } from "../priorityQueue.ts";

/** One tenant's requests of one class for one model. */
export class Flow {
  readonly tenant: string;
  weight: number;
  /** How many of its requests wait. */
  waiting = 0;
  /** Virtual time up to which the flow has had its share; only grows. */
  servedUntil: number;
  /** Tokens that were charged and not used: the next charge is the less. */
  refund = 0;
  /** Its place among the flows that wait; null: none of its requests does. */
  turn: Queued<Flow> | null = null;
  /** The order in which flows were made; breaks ties. */
  readonly number: number;

  constructor(tenant: string, weight: number, servedUntil: number, number: number) {
    this.tenant = tenant;
    this.weight = weight;
    this.servedUntil = servedUntil;
    this.number = number;
  }

  /** Whose turn is first. */
  before(other: Flow): boolean {
    return this.servedUntil === other.servedUntil ? this.number < other.number : this.servedUntil < other.servedUntil;
  }
}
