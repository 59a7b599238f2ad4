import { advance, ask, beginAt, FULLER_ASKS, fullerLater, restart } from "./steps.ts";
import type { Live, Place, Replaying, Step, StreamInput } from "./streamState.ts";

/** An answer that lacks something, or does not come, is asked for again once. */
const MAX_TRIES = 2;

/** A batch of the replay. */
export function onRepeated(state: Replaying, repeated: Extract<StreamInput, { kind: "repeated" }>): Step {
  const { place } = state;
  const { seq, same } = repeated;
  if (place === null) return accept(state, beginAt(seq, { short: false }));
  if (state.replaces) {
    // No more than is known: all that matters is what comes after that.
    if (seq >= place.sinceSeq) return onRepeated({ ...state, replaces: false, cursorAsked: place.cursor }, repeated);
    const { state: next, effects } = accept(state, beginAt(seq, { short: false, asksLeft: place.asksLeft }));
    return { state: next, effects: [{ kind: "tellLost", why: "rebuild" }, ...effects] };
  }
  if (state.holed || seq < place.cursor) return { state, effects: [] };
  if (seq === place.cursor) return same ? { state: { ...state, met: true }, effects: [] } : restart();
  // Its window has moved on, or this is another process that has come as far: the answer holds all that can be had.
  const isJoined = state.met || isNews(state) || place.cursor < 0;
  if (seq === place.cursor + 1 && isJoined) return accept(state, advance(place, seq));
  // Sockets drop what their queue cannot take, and then asking again helps. What the engine never sent it never will.
  if (isJoined && (state.tries < MAX_TRIES || isNews(state))) return { state: { ...state, holed: true }, effects: [] };
  const asksLeft = state.goal === "rebuild" ? place.asksLeft : FULLER_ASKS;
  const { state: next, effects } = accept({ ...state, goal: "rebuild" }, beginAt(seq, { short: false, asksLeft }));
  return { state: next, effects: [{ kind: "tellLost", why: "gap" }, ...effects] };
}

export function onRepeatEnded(state: Replaying): Step {
  const { place, goal } = state;
  if (state.holed) return askAgain(state);
  // It has not even the batch at the cursor.
  if (place !== null && place.cursor >= 0 && !state.met && !isNews(state)) return restart();
  const known: Place =
    place === null ? { cursor: -1, sinceSeq: 0, short: false, asksLeft: FULLER_ASKS } : { ...place, short: false };
  const news: Step["effects"] = goal === "check" ? [] : [{ kind: "tellLive" }, ...fullerLater(known)];
  const { state: live, effects } = toLive(state, known, news);
  return { state: { ...live, gapStays: goal === "gap" && !isNews(state) }, effects };
}

export function onRepeatFailed(state: Replaying, why: string): Step {
  const { goal, place } = state;
  if (goal === "check") return toLive(state, place, []);
  if (state.tries < MAX_TRIES || isNews(state)) return askAgain(state);
  const failed = { kind: "tellFailed", why } as const;
  const later = { kind: "rebuildLater" } as const;
  const live = { kind: "tellLive" } as const;
  if (goal === "resume" || goal === "gap")
    return toLive(state, null, [failed, { kind: "tellLost", why: "no_replay" }, live, later]);
  if (place === null) return toLive(state, null, [failed, live, later]);
  // What is known stays, or what of it was repeated; the rest is asked for another time.
  const { state: behind, effects } = toLive(state, { ...place, short: true }, [failed, later]);
  return { state: { ...behind, behind: true }, effects };
}

function askAgain(state: Replaying): Step {
  const { goal, place, heardSeq, replaces } = state;
  return ask(goal, place, heardSeq, { replaces, tries: isNews(state) ? 1 : state.tries + 1 });
}

function toLive(
  { heardSeq }: Replaying,
  place: Place | null,
  effects: Step["effects"],
): { state: Live; effects: Step["effects"] } {
  return {
    state: { phase: "live", place, heardSeq, gapStays: false, sure: true, behind: false },
    effects: [{ kind: "endReplay" }, ...effects],
  };
}

function accept(state: Replaying, place: Place): Step {
  return { state: { ...state, place, replaces: false }, effects: [{ kind: "apply" }] };
}

/** Whether the answer brought a batch that was not known. */
function isNews({ place, cursorAsked, replaces }: Replaying): boolean {
  return !replaces && place !== null && place.cursor !== cursorAsked;
}
