import type { EngineKind, HandoffSettings, ReplicaLabels, Role } from "#src/discovery/replicaSpec.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { endpoint, prefixed, profile } from "../harness.ts";

export interface PairEngine {
  readonly name: string;
  readonly role: Role;
  readonly labels?: ReplicaLabels;
  readonly slots?: number;
  readonly handoff?: HandoffSettings;
  readonly kind?: EngineKind;
}

export function pairFleet(engines: readonly PairEngine[]): Fleet {
  const fleet = new Fleet();
  fleet.applyEndpoints(
    "list",
    engines.map(({ name, role, labels = { host: "h1" }, handoff }) => ({
      ...endpoint(name),
      role,
      labels,
      ...(handoff === undefined ? {} : { handoff }),
    })),
    0,
  );
  for (const { name, slots = 64, kind = "vllm" } of engines) {
    fleet.applyProfile(name, { ...profile(slots), kind }, 0);
    fleet.applyHealth(name, "ready", 0);
  }
  return fleet;
}

/** A prompt of `blocks` blocks of 16 tokens that can be handed over. */
export function splittable(seed: number, blocks: number, over: Partial<RouteRequest> = {}): RouteRequest {
  return prefixed(seed, blocks, { handoffs: ["nixl"], ...over });
}

export function replicaOf(fleet: Fleet, id: string): Replica {
  const replica = fleet.byId(id);
  if (replica === null) throw new Error(`no replica ${id}`);
  return replica;
}

/** `p0>d0` of a pair, the replica's name of another placement. */
export function where(placement: Placement | null): string {
  if (placement === null) return "nowhere";
  const { prefill, replica } = placement;
  return prefill === null ? replica.id : `${prefill.replica.id}>${replica.id}`;
}

/** Puts so much work on a replica that nobody who can choose goes there. */
export function makeBusy(fleet: Fleet, id: string, decoding: number): void {
  const replica = replicaOf(fleet, id);
  for (let n = 0; n < decoding; n++) {
    const reservation = fleet.ledger.reserve(prefixed(10_000 + n, 250), replica, 0, 500, 0);
    fleet.ledger.firstToken(reservation, 0);
  }
}
