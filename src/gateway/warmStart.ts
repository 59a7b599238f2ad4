import type { Cancel, Timers } from "#src/determinism/timers.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";
import { wouldFitIfToldAnew } from "./viewRepair.ts";

/** An engine that has not even said what it is by then, where others have, is not waited for. */
const IDENTIFIED_WITHIN_MS = 1000;

export interface WarmStartTools {
  readonly fleet: Fleet;
  readonly log: RequestLog;
  readonly timers: Timers;
}

/** How far the router has come in learning what its engines hold. */
export interface WarmStartReport {
  readonly done: boolean;
  /** Replicas whose events are still to come, with the batches that came so far. */
  readonly pending: readonly { readonly replica: string; readonly batches: number }[];
}

/**
 * A router that starts after its engines would place the first requests blindly. So it is not ready before their event
 * streams have told what is there, or have failed, or its time is up; and once done, this never begins again.
 */
export class WarmStart {
  readonly #tools: WarmStartTools;
  /** By replica: its stream is up to date, or cannot be had now. */
  readonly #settled = new Set<string>();
  /** Endpoints that have said that something is wrong with a stream. */
  readonly #failed = new Set<string>();
  #cancels: readonly Cancel[] = [];
  #done = false;
  #identifyingIsOver = false;

  constructor(tools: WarmStartTools) {
    this.#tools = tools;
  }

  /** @param limitMs from now on */
  begin(limitMs: number): void {
    const { timers } = this.#tools;
    if (limitMs === 0) this.#done = true;
    else
      this.#cancels = [
        timers.after(limitMs, () => this.#giveUp(limitMs)),
        timers.after(IDENTIFIED_WITHIN_MS, () => void (this.#identifyingIsOver = true)),
      ];
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel();
  }

  settled(endpointName: string, rank: number): void {
    if (this.#done) return;
    for (const replica of this.#tools.fleet.ofEndpoint(endpointName))
      if ((replica.rank ?? 0) === rank) this.#settled.add(replica.id);
  }

  failed(endpointName: string, rank: number): void {
    if (this.#done) return;
    this.#failed.add(endpointName);
    this.settled(endpointName, rank);
  }

  report(): WarmStartReport {
    if (this.#done) return { done: true, pending: [] };
    const { fleet, log } = this.#tools;
    const waitedFor = fleet.replicas().filter((replica) => this.#isPending(replica));
    if (waitedFor.length === 0 && fleet.replicas().some(({ profile }) => profile !== null)) {
      this.#end();
      log.event("info", "what the engines hold is known");
      return { done: true, pending: [] };
    }
    const pending = waitedFor.map(({ id, index }) => ({
      replica: id,
      batches: fleet.index.view(index).counts.batches,
    }));
    return { done: false, pending };
  }

  #isPending(replica: Replica): boolean {
    const { id, index, endpoint, lifecycle, profile } = replica;
    if (profile === null && this.#identifyingIsOver) return false;
    if (wouldFitIfToldAnew(this.#tools.fleet, replica)) return true;
    if (this.#settled.has(id) || endpoint.kvEvents === null || lifecycle.state === "unreachable") return false;
    // Where one rank's stream failed and another has told nothing, the engine has none.
    return !this.#failed.has(endpoint.name) || this.#tools.fleet.index.view(index).state.state !== "absent";
  }

  #giveUp(limitMs: number): void {
    const { pending, done } = this.report();
    if (done) return;
    this.#end();
    this.#tools.log.event("warn", "not all that the engines hold is known, and the time for it is up", {
      limitMs,
      pending,
    });
  }

  #end(): void {
    this.#done = true;
    for (const cancel of this.#cancels) cancel();
    this.#settled.clear();
    this.#failed.clear();
  }
}
