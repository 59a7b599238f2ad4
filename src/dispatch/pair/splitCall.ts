import type { Handoff, HandoffIds } from "#src/engines/handoff/handoff.ts";
import type { Placed } from "../schedulerPort.ts";

/** The prefill side of a placement, as far as carrying needs to know it. */
export interface PlacedPrefill {
  readonly replica: Placed["replica"];
  readonly handoff: Pick<Handoff, "order">;
  /** How long its engine keeps KV that nobody fetches; null: it keeps none. */
  readonly leaseMs: number | null;
}

/** The bytes of the two legs of a split request. */
export interface SplitCall<P> {
  prefill(placement: P, ids: HandoffIds): readonly Buffer[];
  /**
   * @param answer body of the prefill leg's answer; null where both legs leave together
   * @returns `handed_over` false: the answer names nothing to fetch, and this asks for the whole
   */
  decode(
    placement: P,
    ids: HandoffIds,
    answer: Buffer | null,
  ): { readonly handedOver: boolean; readonly body: readonly Buffer[] };
}
