import assert from "node:assert/strict";
import { FIRST_STATE, type Place, type StreamInput, type StreamState } from "#src/engines/events/stream/streamState.ts";
import { transition } from "#src/engines/events/stream/transition.ts";

/** A batch of the model: which process published it, and as which number. */
interface Batch {
  readonly process: number;
  readonly seq: number;
}

/** What may happen, by number; what cannot happen at a moment does nothing. */
export const ACTIONS = [
  "publish",
  "publishUnsent",
  "skipNumber",
  "hear",
  "hearTwice",
  "repeat",
  "repeatDropped",
  "repeatEnd",
  "repeatFail",
  "disconnect",
  "connect",
  "greet",
  "restart",
  "check",
  "rebuild",
  "startOver",
] as const;

export type Action = (typeof ACTIONS)[number];

/**
 * An engine that publishes, loses messages, dies and comes back, and a stream that follows it. After every step it is
 * asserted that what was told since the last loss is an unbroken run of one process's batches.
 */
export class StreamModel {
  readonly #canReplay: boolean;
  readonly #windowBatches: number;
  #process = 0;
  #nextSeq = 0;
  #window: Batch[] = [];
  #subscription: Batch[] | null = null;
  #answer: Batch[] | null = null;
  state: StreamState = FIRST_STATE;
  told: Batch[] = [];
  /** What the listener was told last of its view: sure from `live` on, until something else. */
  isLive = false;
  losses = 0;

  constructor({ canReplay, windowBatches }: { canReplay: boolean; windowBatches: number }) {
    this.#canReplay = canReplay;
    this.#windowBatches = windowBatches;
  }

  get lastPublished(): Batch | null {
    return this.#window.at(-1) ?? null;
  }

  act(action: Action): void {
    switch (action) {
      case "publish":
        return this.#publish(true);
      case "publishUnsent":
        return this.#publish(false);
      case "skipNumber":
        this.#nextSeq++;
        return;
      case "hear":
        return this.#hear(true);
      case "hearTwice":
        return this.#hear(false);
      case "repeat":
        return this.#repeat();
      case "repeatDropped":
        this.#answer?.shift();
        return;
      case "repeatEnd":
        if (this.#answer?.length === 0) this.#input({ kind: "repeatEnded" });
        return;
      case "repeatFail":
        if (this.#answer !== null) this.#input({ kind: "repeatFailed", why: "silent" });
        return;
      case "disconnect":
        if (this.#subscription !== null) this.#input({ kind: "disconnected", why: "cut" });
        return;
      case "connect":
        this.#input({ kind: "connect" });
        return;
      case "greet":
        if (this.#subscription !== null) this.#input({ kind: "connected" });
        return;
      case "restart":
        this.#process++;
        this.#nextSeq = 0;
        this.#window = [];
        this.act("disconnect");
        return;
      case "check":
        this.#input({ kind: "checkDue" });
        return;
      case "rebuild":
        this.#input({ kind: "rebuildDue" });
        return;
      case "startOver":
        this.#input({ kind: "startOver" });
        return;
    }
  }

  /** Everything goes well from now on, until there is nothing more to do. */
  settle(): void {
    for (let step = 0; step < 10_000; step++) {
      const { phase } = this.state;
      if (phase === "waiting") this.act("connect");
      else if (phase === "connecting") this.act("greet");
      else if (phase === "replaying") this.act(this.#answer?.length === 0 ? "repeatEnd" : "repeat");
      else if (this.#subscription !== null && this.#subscription.length > 0) this.act("hear");
      else return;
    }
    assert.fail("never settles");
  }

  #publish(isSent: boolean): void {
    const batch = { process: this.#process, seq: this.#nextSeq++ };
    this.#window = [...this.#window, batch].slice(-this.#windowBatches);
    if (isSent) this.#subscription?.push(batch);
  }

  #hear(isConsumed: boolean): void {
    const batch = this.#subscription?.[0];
    if (batch === undefined || this.state.phase !== "live") return;
    const subscription = this.#subscription;
    const held = this.#input({ kind: "heard", ...this.#facts(batch) }, batch);
    // The same queue still stands unless the step closed it.
    if (!held && isConsumed && this.#subscription === subscription) subscription?.shift();
  }

  #repeat(): void {
    const batch = this.#answer?.shift();
    if (batch !== undefined) this.#input({ kind: "repeated", ...this.#facts(batch) }, batch);
  }

  #facts({ process, seq }: Batch): { seq: number; same: boolean; newer: boolean } {
    const last = this.told.at(-1);
    return {
      seq,
      same: last?.process === process && last.seq === seq,
      newer: last !== undefined && (process > last.process || (process === last.process && seq > last.seq)),
    };
  }

  #place(): Place | null {
    return this.state.phase === "stopped" ? null : this.state.place;
  }

  #input(input: StreamInput, batch: Batch | null = null): boolean {
    const { state, effects } = transition(this.state, input, { canReplay: this.#canReplay });
    this.state = state;
    let held = false;
    for (const effect of effects) {
      switch (effect.kind) {
        case "openSubscription":
          this.#subscription = [];
          break;
        case "closeAll":
          this.#subscription = null;
          this.#answer = null;
          break;
        case "ask":
          assert.ok(this.#canReplay);
          this.#answer = this.#window.filter(({ seq }) => seq >= effect.fromSeq);
          break;
        case "endReplay":
          this.#answer = null;
          break;
        case "apply":
          assert.ok(batch !== null);
          this.told.push(batch);
          break;
        case "hold":
          held = true;
          break;
        case "tellLost":
        case "tellRestarted":
          this.told = [];
          this.isLive = false;
          this.losses++;
          break;
        case "tellLive":
          this.isLive = true;
          break;
        case "tellFailed":
          this.isLive = false;
          break;
        case "connectLater":
        case "rebuildLater":
          break;
      }
    }
    this.#assertUnbroken();
    return held;
  }

  #assertUnbroken(): void {
    const [first] = this.told;
    for (const [at, batch] of this.told.entries()) {
      assert.equal(batch.seq, (first?.seq ?? 0) + at, "a batch is missing or told twice");
      // Without replay, a process that happens to continue another's numbers cannot be told from it.
      if (this.#canReplay) assert.equal(batch.process, first?.process, "batches of two processes in one history");
    }
    const place = this.#place();
    if (place === null || this.state.phase === "waiting") return;
    const isReplaced = this.state.phase === "replaying" && this.state.replaces;
    if (first !== undefined && !isReplaced) assert.equal(place.sinceSeq, first.seq);
    assert.equal(place.cursor, this.told.at(-1)?.seq ?? -1);
  }
}
