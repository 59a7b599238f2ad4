import type { Goal, Place, Replaying, Step } from "./streamState.ts";

/**
 * A window that has moved on and messages that a socket dropped look alike in one answer, hardly ever in all of several.
 * Each answer is all that the engine keeps, so that it is not asked for ever.
 */
export const FULLER_ASKS = 4;

export interface StreamSetting {
  /** The engine can be asked to repeat batches. */
  readonly canReplay: boolean;
}

/**
 * Asks for the batches from the cursor on, the batch at the cursor included: only that it comes again, and unchanged,
 * shows that the process that published it is still there. Another one may have reached any number meanwhile.
 */
export function ask(
  goal: Goal,
  place: Place | null,
  heardSeq: number | null,
  { replaces = false, tries = 1 }: { replaces?: boolean; tries?: number } = {},
): { state: Replaying; effects: Step["effects"] } {
  const cursorAsked = replaces ? null : (place?.cursor ?? null);
  return {
    state: { phase: "replaying", goal, place, heardSeq, cursorAsked, tries, met: false, holed: false, replaces },
    effects: [{ kind: "endReplay" }, { kind: "ask", fromSeq: Math.max(0, cursorAsked ?? 0) }],
  };
}

/** Another process publishes: what was told is void, and its own history is asked for from the start. */
export function restart(): Step {
  const { state, effects } = ask("rebuild", null, null);
  return { state, effects: [{ kind: "tellRestarted" }, ...effects] };
}

export function advance(place: Place, seq: number): Place {
  return { ...place, cursor: seq };
}

/** A history that begins with this batch, since what came before it cannot be had. */
export function beginAt(seq: number, { short, asksLeft = FULLER_ASKS }: { short: boolean; asksLeft?: number }): Place {
  return { cursor: seq, sinceSeq: seq, short, asksLeft };
}

/** To ask for a fuller history another time, if there may be one. */
export function fullerLater({ sinceSeq, asksLeft }: Place): Step["effects"] {
  return sinceSeq > 0 && asksLeft > 0 ? [{ kind: "rebuildLater" }] : [];
}
