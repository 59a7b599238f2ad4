import type { KvLoss } from "../kvEventListener.ts";

/** Which batches have been told to the listener and are still valid. */
export interface Place {
  /** The last one; -1: none, and it is known that there was none. */
  readonly cursor: number;
  /** The first of the unbroken history. */
  readonly sinceSeq: number;
  /** The engine may be able to repeat more than is known: nothing has been repeated yet. */
  readonly short: boolean;
  /** How often it is still asked for a history that goes back further. */
  readonly asksLeft: number;
}

/** Why batches are being repeated. */
export type Goal =
  /** Nothing is known, or less than could be: all that the engine can repeat. */
  | "rebuild"
  /** After an interruption: what was missed, and whether it is still the same process. */
  | "resume"
  /** The next batch of the subscription is not the one after the cursor. */
  | "gap"
  /** Nothing was heard for a while: to find out whether there was nothing to hear. */
  | "check";

export interface Replaying {
  readonly phase: "replaying";
  readonly goal: Goal;
  readonly place: Place | null;
  /** Last batch heard on this connection. Batches come in order on one, whatever a replay says meanwhile. */
  readonly heardSeq: number | null;
  /** The cursor when it was asked; null: nothing was known. */
  readonly cursorAsked: number | null;
  /** Questions since the last one that brought something new. */
  readonly tries: number;
  /** The batch at the cursor was repeated and is what was told: the same process still publishes. */
  readonly met: boolean;
  /** A batch was missing in this answer, the rest of which is passed over: the question is put again from there. */
  readonly holed: boolean;
  /** What is known is forgotten as soon as the answer begins, not before. */
  readonly replaces: boolean;
}

export interface Live {
  readonly phase: "live";
  /** Null: nothing is known; the next batch begins a history. */
  readonly place: Place | null;
  readonly heardSeq: number | null;
  /** A replay brought nothing that closes the gap before the next batch of the subscription. */
  readonly gapStays: boolean;
  /** False: after an interruption without replay, until a batch shows that nothing was missed. */
  readonly sure: boolean;
  /** The last replay broke off, so that batches after the cursor may be missing, until one shows that none is. */
  readonly behind: boolean;
}

export type StreamState =
  | { readonly phase: "waiting"; readonly place: Place | null }
  | { readonly phase: "connecting"; readonly place: Place | null }
  | Replaying
  | Live
  | { readonly phase: "stopped" };

interface FrameFacts {
  readonly seq: number;
  /** It has the same bytes as the batch at the cursor. */
  readonly same: boolean;
  /** The engine made it later than the batch at the cursor. */
  readonly newer: boolean;
}

export type StreamInput =
  | { readonly kind: "connect" }
  | { readonly kind: "connected" }
  | { readonly kind: "disconnected"; readonly why: string }
  /** The next batch of the subscription. */
  | ({ readonly kind: "heard" } & FrameFacts)
  /** The next batch of the replay. */
  | ({ readonly kind: "repeated" } & FrameFacts)
  | { readonly kind: "repeatEnded" }
  | { readonly kind: "repeatFailed"; readonly why: string }
  | { readonly kind: "rebuildDue" }
  | { readonly kind: "checkDue" }
  /** By other news than the stream's, another process publishes: what was told is void, as is this connection. */
  | { readonly kind: "startOver" }
  | { readonly kind: "stop" };

/** What is to be done, in this order. A batch that is neither applied nor held was told before or is void. */
export type StreamEffect =
  | { readonly kind: "openSubscription" }
  | { readonly kind: "closeAll" }
  | { readonly kind: "connectLater" }
  | { readonly kind: "ask"; readonly fromSeq: number }
  | { readonly kind: "endReplay" }
  | { readonly kind: "rebuildLater" }
  /** The batch of this input goes to the listener. */
  | { readonly kind: "apply" }
  /** The batch of this input stays the next of its source. */
  | { readonly kind: "hold" }
  | { readonly kind: "tellLost"; readonly why: KvLoss }
  | { readonly kind: "tellRestarted" }
  | { readonly kind: "tellLive" }
  | { readonly kind: "tellFailed"; readonly why: string };

export interface Step {
  readonly state: StreamState;
  readonly effects: readonly StreamEffect[];
}

export const FIRST_STATE: StreamState = { phase: "waiting", place: null };
