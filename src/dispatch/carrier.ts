import type { Clock } from "#src/determinism/clock.ts";
import type { Call, CallResult } from "./call.ts";
import { Carriage } from "./carriage.ts";
import type { Deadlines } from "./deadlines.ts";
import { shuttingDown } from "./failures.ts";
import type { Placed, SchedulerPort } from "./schedulerPort.ts";
import type { Upstreams } from "./upstreams.ts";

export interface CarrierOptions<P extends Placed, T> {
  readonly scheduler: SchedulerPort<P, T>;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  /** Further attempts after the first. */
  readonly maxRetries: number;
}

/** Carries requests: gets each a placement, runs its legs, and tells the scheduler how they ended. */
export class Carrier<P extends Placed, T> {
  readonly #options: CarrierOptions<P, T>;
  readonly #active = new Set<Carriage<P, T>>();

  constructor(options: CarrierOptions<P, T>) {
    this.#options = options;
  }

  /** Requests in hand, waiting ones included. */
  get active(): number {
    return this.#active.size;
  }

  /** Never rejects. */
  carry(call: Call<P>): Promise<CallResult<P>> {
    return new Promise((resolve) => {
      const carriage = new Carriage(call, this.#options, (result) => {
        this.#active.delete(carriage);
        resolve(result);
      });
      this.#active.add(carriage);
      carriage.start();
    });
  }

  /** The grace time is over: ends everything that is still in hand. */
  abortAll(): void {
    for (const carriage of this.#active) carriage.shutDown(shuttingDown());
  }
}
