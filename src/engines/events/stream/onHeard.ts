import { advance, ask, beginAt, fullerLater, restart, type StreamSetting } from "./steps.ts";
import type { Live, Step, StreamEffect, StreamInput } from "./streamState.ts";

type Heard = Extract<StreamInput, { kind: "heard" }>;

/** A batch of the subscription, while nothing is being repeated. */
export function onHeard(state: Live, heard: Heard, { canReplay }: StreamSetting): Step {
  const { place } = state;
  const { seq } = heard;
  const live: Live = { ...state, heardSeq: seq, gapStays: false, sure: true };
  const tellIfUnsure: StreamEffect[] = state.sure && !state.behind ? [] : [{ kind: "tellLive" }];

  if (place === null) return { state: { ...live, place: beginAt(seq, { short: true }) }, effects: [{ kind: "apply" }] };
  if (seq === place.cursor && heard.same) return { state: live, effects: state.sure ? [] : tellIfUnsure };
  if (isOfAnotherProcess(state, place.cursor, heard)) {
    if (!canReplay) return startOver(live, seq, { kind: "tellRestarted" }, false);
    const { state: replaying, effects } = restart();
    return { state: replaying, effects: [...effects, { kind: "hold" }] };
  }
  // A replay was faster.
  if (seq <= place.cursor) return { state: live, effects: [] };
  if (seq === place.cursor + 1) {
    const next: Live = { ...live, place: advance(place, seq), behind: false };
    return { state: next, effects: [...tellIfUnsure, { kind: "apply" }] };
  }
  if (!canReplay || state.gapStays) {
    return startOver(live, seq, { kind: "tellLost", why: canReplay ? "gap" : "no_replay" }, canReplay);
  }
  const { state: replaying, effects } = ask("gap", place, state.heardSeq);
  return { state: replaying, effects: [...effects, { kind: "hold" }] };
}

/**
 * A process numbers its batches upwards from 0 and one connection keeps their order. So a number that goes back is of
 * another process, as is a batch that is not after the cursor and yet was made later, or is another than the one told.
 */
function isOfAnotherProcess({ heardSeq, sure }: Live, cursor: number, { seq, same, newer }: Heard): boolean {
  if (seq > cursor) return heardSeq !== null && seq <= heardSeq;
  return (heardSeq !== null && seq <= heardSeq) || newer || (seq === cursor && !same) || !sure;
}

function startOver(live: Live, seq: number, effect: StreamEffect, canReplay: boolean): Step {
  const place = beginAt(seq, { short: false });
  const later = canReplay ? fullerLater(place) : [];
  return {
    state: { ...live, place, behind: false },
    effects: [effect, { kind: "apply" }, { kind: "tellLive" }, ...later],
  };
}
