import { ClassTable } from "#src/scheduler/classes.ts";
import type { ServiceClass } from "#src/scheduler/classes.ts";
import { FairLine } from "#src/scheduler/flows/fairLine.ts";
import type { Place } from "#src/scheduler/flows/fairLine.ts";
import type { Waiter } from "#src/scheduler/flows/flow.ts";
import { ModelShare } from "#src/scheduler/flows/modelShare.ts";
import type { Seat } from "#src/scheduler/flows/modelShare.ts";

export interface Job extends Waiter {
  seat: Seat<Job> | null;
}

let jobs = 0;

export function job(tenant: string, tokens: number, className = "standard"): Job {
  return { request: { className, tenant, bodyBytes: 10 }, tokens, sequence: jobs++, seat: null };
}

export interface Served {
  readonly job: Job;
  /** Tokens that were served before it. */
  readonly afterTokens: number;
}

export interface CounterOptions {
  readonly classes?: readonly ServiceClass[];
  readonly weights?: Readonly<Record<string, number>>;
  readonly maxFlows?: number;
}

/** A counter with one line at which one is served after the other. */
export class Counter {
  readonly share: ModelShare<Job>;
  readonly line: FairLine<Job>;
  readonly served: Served[] = [];
  #tokens = 0;

  constructor({ classes = [], weights = {}, ...options }: CounterOptions = {}) {
    this.share = new ModelShare({
      classes: new ClassTable(classes),
      tenantWeight: (tenant) => weights[tenant] ?? 1,
      ...options,
    });
    this.line = new FairLine(this.share);
  }

  queue(tenant: string, tokens: number, className = "standard", rank: number | null = null): Place<Job> {
    const queued = job(tenant, tokens, className);
    queued.seat = this.share.arrives(queued);
    return this.line.push(queued, rank ?? queued.sequence, queued.seat);
  }

  /** Serves whose turn it is. */
  serve(times = 1): void {
    for (let time = 0; time < times; time++) {
      const place = this.line.first;
      if (place === null) return;
      this.charge(place.value);
      this.line.remove(place);
      this.share.leaves(place.value.seat!);
    }
  }

  charge(job: Job): void {
    const share = this.share.classOf(job.request.className);
    this.share.charge(share, share.flows.flowOf(job.request.tenant), job.tokens);
    this.served.push({ job, afterTokens: this.#tokens });
    this.#tokens += job.tokens;
  }

  /** Served tokens of a tenant, from the `from`th service on. */
  tokensOf(tenant: string, from = 0): number {
    return this.served.slice(from).reduce((sum, { job }) => sum + (job.request.tenant === tenant ? job.tokens : 0), 0);
  }

  tenants(from = 0): string[] {
    return this.served.slice(from).map(({ job }) => job.request.tenant);
  }
}
