import { shuttingDown } from "#src/errors/shared.ts";
import type { Clock } from "#src/determinism/clock.ts";
import type { Call, CallResult } from "./call.ts";
import { Carriage } from "./carriage.ts";
import { HandoffNumbers } from "./pair/handoffNumbers.ts";
import type { Placed, SchedulerPort } from "./schedulerPort.ts";
import type { Upstreams } from "./upstreams.ts";

export interface CarrierOptions<P extends Placed, T> {
  readonly scheduler: SchedulerPort<P, T>;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  /** Further attempts after the first. */
  readonly maxRetries: number;
}

/** Carries requests: gets each a placement, runs its legs, and tells the scheduler how they ended. */
export class Carrier<P extends Placed, T> {
  readonly #options: CarrierOptions<P, T>;
  readonly #handoffs = new HandoffNumbers();
  /** A list, not a set: a set that changes with every request leaves tables behind that only a full collection frees. */
  readonly #active: Carriage<P, T>[] = [];

  constructor(options: CarrierOptions<P, T>) {
    this.#options = options;
  }

  /** Requests in hand, waiting ones included. */
  get active(): number {
    return this.#active.length;
  }

  /** Never rejects. */
  carry(call: Call<P>): Promise<CallResult<P>> {
    return new Promise((resolve) => {
      const carriage = new Carriage(call, this.#options, this.#handoffs, (result) => {
        this.#forget(carriage);
        resolve(result);
      });
      carriage.slot = this.#active.push(carriage) - 1;
      carriage.start();
    });
  }

  /** The grace time is over: ends everything that is still in hand. */
  abortAll(): void {
    for (let next = this.#active.at(-1); next !== undefined; next = this.#active.at(-1)) next.shutDown(shuttingDown());
  }

  #forget(carriage: Carriage<P, T>): void {
    const last = this.#active.pop();
    if (last === undefined || last === carriage) return;
    this.#active[carriage.slot] = last;
    last.slot = carriage.slot;
  }
}
