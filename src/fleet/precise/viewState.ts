/** Why a view that is up to date may yet be wrong. */
export type Doubt =
  /** The engine could not repeat its events from the start: it may hold more than was told. */
  | "history_incomplete"
  /** Events were lost and could not be repeated: what was told before them is forgotten. */
  | "gap"
  /** A batch did not come, and nobody said that it was lost. */
  | "batch_missing"
  /** A block was stored after one that is not there: where it belongs is not known. */
  | "parent_unknown"
  /** A block was removed from GPU memory that was never stored there. */
  | "removal_unknown"
  | "unreadable"
  /** One of the engine's hashes stood for two different blocks. */
  | "hash_reused"
  | "too_many_copies";

export type DropReason =
  /** The bound on blocks over the whole fleet was hit, and this was the fullest view. */
  | "index_full"
  /** The engine's blocks are not whole multiples of those that its pool's prompts are hashed by. */
  | "block_size";

/** What is known of one incarnation's blocks from its events. Only `live` is exact. */
export type ViewState =
  /** No events were heard of. */
  | { readonly state: "absent" }
  /** The engine is known to be another process, but events may still come from the one before: they are void. */
  | { readonly state: "awaiting"; readonly sinceMs: number }
  /** Events are coming that bring the view up to date. */
  | {
      readonly state: "rebuilding";
      readonly sinceMs: number;
      /** It was told from the engine's start, or from the last time it held nothing. */
      readonly whole: boolean;
      readonly gap: boolean;
      readonly doubt: Doubt | null;
    }
  | { readonly state: "live"; readonly sinceMs: number }
  /** Up to date, but perhaps not right. It stays so until the engine holds nothing or tells everything again. */
  | { readonly state: "unsure"; readonly sinceMs: number; readonly why: Doubt }
  /** Given up: nothing is kept, events are passed over until one says that the engine holds nothing. */
  | { readonly state: "dropped"; readonly sinceMs: number; readonly why: DropReason; readonly upToDate: boolean };

export type ViewInput =
  | { readonly kind: "told" }
  /** The history is told from its first event, or from a point where the engine held nothing. */
  | { readonly kind: "whole" }
  /** Everything published so far has been told. */
  | { readonly kind: "up_to_date"; readonly complete: boolean }
  /** Something may have been published that was not told. */
  | { readonly kind: "interrupted" }
  /** What was told is void; what is told from now on counts. */
  | { readonly kind: "void"; readonly gap: boolean }
  | { readonly kind: "doubt"; readonly why: Doubt }
  | { readonly kind: "drop"; readonly why: DropReason }
  /** Another process answers at the endpoint, by other news than the events. */
  | { readonly kind: "engine_restarted" };

/** The one place where a view's state changes. Pure; returns the same object where nothing changes. */
export function transition(view: ViewState, input: ViewInput, nowMs: number): ViewState {
  switch (input.kind) {
    case "told":
      return view.state === "absent" ? rebuilding(nowMs) : view;
    case "whole":
      return onWhole(view, nowMs);
    case "up_to_date":
      return onUpToDate(view, input.complete, nowMs);
    case "interrupted":
      return onInterrupted(view, nowMs);
    case "void":
      return { ...rebuilding(nowMs), gap: input.gap };
    case "doubt":
      if (view.state === "live") return { state: "unsure", sinceMs: nowMs, why: input.why };
      return view.state === "rebuilding" && view.doubt === null ? { ...view, doubt: input.why } : view;
    case "drop":
      if (view.state === "absent" || view.state === "awaiting" || view.state === "dropped") return view;
      return { state: "dropped", sinceMs: nowMs, why: input.why, upToDate: view.state !== "rebuilding" };
    case "engine_restarted":
      break;
  }
  return view.state === "absent" ? view : { state: "awaiting", sinceMs: nowMs };
}

function rebuilding(nowMs: number): Extract<ViewState, { state: "rebuilding" }> {
  return { state: "rebuilding", sinceMs: nowMs, whole: false, gap: false, doubt: null };
}

function onWhole(view: ViewState, nowMs: number): ViewState {
  if (view.state === "absent") return { ...rebuilding(nowMs), whole: true };
  if (view.state === "rebuilding") return { ...view, whole: true, gap: false, doubt: null };
  if (view.state === "unsure") return { state: "live", sinceMs: nowMs };
  if (view.state !== "dropped") return view;
  return view.upToDate ? { state: "live", sinceMs: nowMs } : { ...rebuilding(nowMs), whole: true };
}

function onUpToDate(view: ViewState, complete: boolean, nowMs: number): ViewState {
  if (view.state === "dropped") return view.upToDate ? view : { ...view, upToDate: true };
  if (view.state === "live") return view;
  // What could not be repeated at first was repeated after all.
  if (view.state === "unsure") return complete && isIncomplete(view.why) ? { state: "live", sinceMs: nowMs } : view;
  // A stream that did not notice the restart has told things that are void.
  if (view.state === "awaiting") return { state: "unsure", sinceMs: nowMs, why: "history_incomplete" };
  const told = view.state === "rebuilding" ? view : rebuilding(nowMs);
  const whole = complete || told.whole;
  const why = whole ? told.doubt : told.gap ? "gap" : "history_incomplete";
  return why === null ? { state: "live", sinceMs: nowMs } : { state: "unsure", sinceMs: nowMs, why };
}

function onInterrupted(view: ViewState, nowMs: number): ViewState {
  if (view.state === "live") return { ...rebuilding(nowMs), whole: true };
  if (view.state === "dropped") return { ...view, upToDate: false };
  if (view.state !== "unsure") return view;
  const { why } = view;
  const incomplete = isIncomplete(why);
  return { ...rebuilding(nowMs), whole: !incomplete, gap: why === "gap", doubt: incomplete ? null : why };
}

/** Nothing that was told is doubtful; there may be more. */
function isIncomplete(why: Doubt): boolean {
  return why === "history_incomplete" || why === "gap";
}
