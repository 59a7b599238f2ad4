import type { Fleet } from "../fleet.ts";
import type { Replica } from "../replica.ts";
import type { PreciseView } from "./preciseView.ts";
import type { Doubt, ViewState } from "./viewState.ts";

const DOUBTS: Readonly<Record<Doubt, string>> = {
  history_incomplete: "they do not go back to its start",
  gap: "some were lost and could not be repeated",
  batch_missing: "one batch of them did not come",
  parent_unknown: "one names a parent that is not there",
  removal_unknown: "one removes a block that is not there",
  unreadable: "some could not be read",
  hash_reused: "one hash stood for two different blocks",
  too_many_copies: "one block has more copies than are counted",
};

/** Raises and clears what an operator must know of one replica's view. */
export function reportView({ conditions, index }: Fleet, { id, index: replicaIndex }: Replica, nowMs: number): void {
  const view = index.view(replicaIndex);
  const { state } = view;
  const hold = (key: "index_approximate" | "events_gap" | "index_full" | "block_size_mismatch", why: string | null) => {
    if (why === null) conditions.clear(key, id);
    else conditions.raise(key, id, why, nowMs);
  };
  const why = whyApproximate(state, view);
  hold("index_approximate", why === null ? null : `What ${id} caches is inferred from own traffic: ${why}.`);
  const gap = (state.state === "rebuilding" && state.gap) || (state.state === "unsure" && state.why === "gap");
  hold("events_gap", gap ? `KV events of ${id} were lost and could not be repeated.` : null);
  const dropped = state.state === "dropped" ? state.why : null;
  const full = `The index is full; ${id} held most of it, and its blocks are followed no more.`;
  hold("index_full", dropped === "index_full" ? full : null);
  const sizes = `${id} has KV blocks of ${view.engineBlockTokens} tokens, which those of its pool do not divide.`;
  hold("block_size_mismatch", dropped === "block_size" ? sizes : null);
}

/** Null: it is not, or there are no events at all, which is said for all such replicas together. */
function whyApproximate(state: ViewState, { counts, trouble }: PreciseView): string | null {
  switch (state.state) {
    case "absent":
    case "live":
      return null;
    case "awaiting":
      return "it restarted, and its new KV events have not come yet";
    case "rebuilding":
      return trouble === null ? `its KV events are being replayed (${counts.batches} batches so far)` : trouble;
    case "unsure":
      return `its KV events are not the whole truth: ${DOUBTS[state.why]}`;
    case "dropped":
      break;
  }
  return "its KV events are not followed";
}

/** Replicas without KV events, in one condition for all. */
export function reportSilent(fleet: Fleet, nowMs: number): void {
  const replicas = fleet.replicas();
  const silent = replicas.filter(({ index }) => fleet.index.view(index).state.state === "absent").length;
  if (silent === 0) fleet.conditions.clear("index_approximate", null);
  else {
    const which =
      silent === replicas.length ? "no replica publishes" : `${silent} of ${replicas.length} do not publish`;
    const message = `Cached prefixes are inferred from own traffic: ${which} KV events.`;
    fleet.conditions.raise("index_approximate", null, message, nowMs);
  }
}
