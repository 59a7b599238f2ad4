import { PriorityQueue } from "../priorityQueue.ts";
import type { Queued } from "../priorityQueue.ts";

/** What classes and tenants need to know of one that waits. */
export interface Waiter {
  readonly request: { readonly className: string; readonly tenant: string; readonly bodyBytes: number };
  /** Prompt and expected output: what it is taken for until it is bound. */
  readonly tokens: number;
  /** The order in which they came. */
  readonly sequence: number;
}

/** Bytes of bodies that count like one more request in the load of a flow: what queues are made for by default. */
export const BYTES_PER_REQUEST = 128 * 1024;

/** One tenant's requests of one class for one model. */
export class Flow<T extends Waiter> {
  readonly tenant: string;
  weight: number;
  /** Virtual time up to which the flow has had its share; only grows. */
  servedUntil: number;
  /** Tokens that were charged and not used: the next charge is the less. */
  refund = 0;
  /** Those that wait, the last one first. */
  readonly newest = new PriorityQueue<T>();
  waitingTokens = 0;
  waitingBytes = 0;
  /** Its places among the flows that wait: by whose turn it is, and by how much waits. Null: nobody does. */
  turn: Queued<Flow<T>> | null = null;
  load: Queued<Flow<T>> | null = null;
  /** The order in which flows were made; breaks ties. */
  readonly number: number;

  constructor(tenant: string, weight: number, servedUntil: number, number: number) {
    this.tenant = tenant;
    this.weight = weight;
    this.servedUntil = servedUntil;
    this.number = number;
  }

  get waiting(): number {
    return this.newest.size;
  }

  /** How much waits, for its weight. */
  get loadPerWeight(): number {
    return loadPerWeight(this.waiting, this.waitingBytes, this.weight);
  }

  /** Whose turn is first. */
  before(other: Flow<T>): boolean {
    return this.servedUntil === other.servedUntil ? this.number < other.number : this.servedUntil < other.servedUntil;
  }
}

export function loadPerWeight(requests: number, bytes: number, weight: number): number {
  return (requests + bytes / BYTES_PER_REQUEST) / weight;
}
