import { onHeard } from "./onHeard.ts";
import { onRepeated, onRepeatEnded, onRepeatFailed } from "./onRepeated.ts";
import { ask, type StreamSetting } from "./steps.ts";
import type { Place, Step, StreamInput, StreamState } from "./streamState.ts";

/** The life of an event stream: the one place where its state changes. Pure. */
export function transition(state: StreamState, input: StreamInput, setting: StreamSetting): Step {
  const ignored: Step = { state, effects: [] };
  if (state.phase === "stopped") return ignored;
  switch (input.kind) {
    case "stop":
      return { state: { phase: "stopped" }, effects: [{ kind: "closeAll" }] };
    case "connect":
      if (state.phase !== "waiting") return ignored;
      return { state: { phase: "connecting", place: state.place }, effects: [{ kind: "openSubscription" }] };
    case "connected":
      return state.phase === "connecting" ? onConnected(state.place, setting) : ignored;
    case "disconnected":
      if (state.phase === "waiting") return ignored;
      return {
        state: { phase: "waiting", place: state.place },
        effects: [{ kind: "closeAll" }, { kind: "tellFailed", why: input.why }, { kind: "connectLater" }],
      };
    case "heard":
      if (state.phase === "live") return onHeard(state, input, setting);
      return { state, effects: state.phase === "replaying" ? [{ kind: "hold" }] : [] };
    case "repeated":
      return state.phase === "replaying" ? onRepeated(state, input) : ignored;
    case "repeatEnded":
      return state.phase === "replaying" ? onRepeatEnded(state) : ignored;
    case "repeatFailed":
      return state.phase === "replaying" ? onRepeatFailed(state, input.why) : ignored;
    case "rebuildDue":
      return setting.canReplay ? onRebuildDue(state) : ignored;
    case "startOver":
      return {
        state: { phase: "connecting", place: null },
        effects: [{ kind: "closeAll" }, { kind: "tellLost", why: "rebuild" }, { kind: "openSubscription" }],
      };
    case "checkDue":
      break;
  }
  if (state.phase !== "live" || !setting.canReplay || state.place === null) return ignored;
  return ask(state.behind ? "rebuild" : "check", state.place, state.heardSeq);
}

function onRebuildDue(state: StreamState): Step {
  if (state.phase === "replaying" && state.goal !== "rebuild") return { state, effects: [{ kind: "rebuildLater" }] };
  if (state.phase !== "live") return { state, effects: [] };
  const { place, heardSeq } = state;
  if (place === null) return ask("rebuild", null, heardSeq);
  if (place.sinceSeq === 0 && !place.short) return { state, effects: [] };
  return ask("rebuild", { ...place, asksLeft: Math.max(0, place.asksLeft - 1) }, heardSeq, { replaces: true });
}

function onConnected(place: Place | null, { canReplay }: StreamSetting): Step {
  if (canReplay) {
    if (place === null) return ask("rebuild", null, null);
    return place.short ? ask("rebuild", place, null, { replaces: true }) : ask("resume", place, null);
  }
  // Without replay only the next batch can show whether something was missed.
  const sure = place === null;
  return {
    state: { phase: "live", place, heardSeq: null, gapStays: false, sure, behind: false },
    effects: sure ? [{ kind: "tellLive" }] : [],
  };
}
