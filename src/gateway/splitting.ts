import type { SplitCall } from "#src/dispatch/pair/splitCall.ts";
import type { Handoff, LegRewrite } from "#src/engines/handoff/handoff.ts";
import { prefillEnd } from "#src/engines/handoffs.ts";
import { readBodyMembers, type BodyMembers } from "#src/request/legs/bodyMembers.ts";
import type { RequestShape } from "#src/request/requestShape.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Edit } from "#src/request/span.ts";
import { spliceBody } from "#src/request/splice.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import type { PrefillLeg } from "#src/scheduler/pairs/prefillLeg.ts";

/** How a request can be split, and what stands in the way. */
export interface Splitting {
  /** Null: nothing can split it. */
  readonly members: BodyMembers | null;
  readonly route: Pick<RouteRequest, "handoffs" | "unsplit">;
}

/** Null: its model has no pairs, so nobody asks. */
export function splittingOf(handoffs: readonly Handoff[], body: Buffer, shape: RequestShape): Splitting | null {
  if (handoffs.length === 0) return null;
  const members = readBodyMembers(body, shape);
  if (members === null) return { members, route: { unsplit: shape.generates ? "api" : "no_output" } };
  const able = handoffs.filter((handoff) => handoff.obstacle(members) === null);
  if (able.length > 0) return { members, route: { handoffs: able.map(({ name }) => name) } };
  return { members: null, route: { unsplit: handoffs[0]!.obstacle(members) ?? "api" } };
}

/** The bodies of both legs, as the engines of a placement want them. */
export function splitBodies(
  members: BodyMembers,
  rewriteFor: (placement: Placement, leg: "prefill" | "decode") => LegRewrite,
): SplitCall<Placement> {
  const bytes = (edits: readonly Edit[]) => spliceBody(members.body, edits);
  return {
    prefill(placement, ids) {
      const { handoff, replica } = prefillOf(placement);
      const end = prefillEnd(replica.endpoint);
      return bytes(handoff.prefillEdits(members, end, ids, rewriteFor(placement, "prefill")));
    },
    decode(placement, ids, answer) {
      const { handoff, replica } = prefillOf(placement);
      const rewrite = rewriteFor(placement, "decode");
      const { kind, edits } = handoff.decodeBody(members, prefillEnd(replica.endpoint), ids, rewrite, answer);
      return { handedOver: kind === "handed_over", body: bytes(edits) };
    },
  };
}

function prefillOf({ prefill }: Placement): PrefillLeg {
  if (prefill === null) throw new Error("a placement on one replica has no legs");
  return prefill;
}
