import type { Cancel } from "../../../determinism/timers.ts";
import { decodeKvMessage, readPublishedMs } from "../wire/kvMessage.ts";
import { backOffMs } from "./backOff.ts";
import { readLiveMessage, type BatchFrame } from "./frames.ts";
import { Inbox } from "./inbox.ts";
import { ReplayAnswer } from "./replayAnswer.ts";
import type { KvEventAddress, OpenSocket } from "./sockets.ts";
import type { StreamListener, StreamStatus } from "./streamListener.ts";
import { FIRST_STATE, type Place, type StreamEffect, type StreamInput, type StreamState } from "./streamState.ts";
import type { StreamTools } from "./streamTools.ts";
import { transition } from "./transition.ts";
import { UNITS_A_SLICE, unitsOf } from "./turns.ts";

const NOTHING: Cancel = () => {};

/** The event stream of one rank: carries out with sockets and timers what `transition` decides. */
export class EventStream {
  readonly #rank: number;
  readonly #address: KvEventAddress;
  readonly #listener: StreamListener;
  readonly #tools: StreamTools;
  readonly #heard: Inbox<BatchFrame>;
  readonly #slice = () => this.#tellSome();
  #state: StreamState = FIRST_STATE;
  #subscription: OpenSocket | null = null;
  #answer: ReplayAnswer | null = null;
  /** The batch at the cursor. */
  #last: { readonly payload: Buffer; readonly publishedMs: number } | null = null;
  /** Messages of the subscription were dropped, and it was not asked for them yet. */
  #hasMissed = false;
  #unitsLeft = 0;
  #toldProgress = 0;
  #heardMs = 0;
  #connectFailures = 0;
  #rebuildFailures = 0;
  #cancelConnect = NOTHING;
  /** Null: none is due. */
  #cancelRebuild: Cancel | null = null;
  #cancelCheck = NOTHING;
  readonly #counts = {
    batches: 0,
    events: 0,
    unreadableEvents: 0,
    strayMessages: 0,
    droppedMessages: 0,
    replays: 0,
    losses: 0,
    restarts: 0,
  };

  constructor(rank: number, address: KvEventAddress, listener: StreamListener, tools: StreamTools) {
    this.#rank = rank;
    this.#address = address;
    this.#listener = listener;
    this.#tools = tools;
    this.#heard = new Inbox(tools.budget, tools.settings.maxQueuedMessages);
    this.#input({ kind: "connect" });
  }

  /** Whether the engine has a replay. */
  get canReplay(): boolean {
    return this.#address.replay !== null;
  }

  /** Forgets everything and begins anew on a new connection. */
  startOver(): void {
    this.#input({ kind: "startOver" });
  }

  stop(): void {
    this.#input({ kind: "stop" });
  }

  status(): StreamStatus {
    return { phase: this.#state.phase, cursor: this.#place?.cursor ?? null, ...this.#counts };
  }

  get #place(): Place | null {
    return this.#state.phase === "stopped" ? null : this.#state.place;
  }

  /** Whether the frame of the input stays where it is. */
  #input(input: StreamInput, frame: BatchFrame | null = null): boolean {
    const { state, effects } = transition(this.#state, input, { canReplay: this.#address.replay !== null });
    this.#state = state;
    for (const effect of effects) this.#carryOut(effect, frame);
    if (frame === null && this.#hasWork()) this.#tools.turns.ask(this.#slice);
    return effects.some(({ kind }) => kind === "hold");
  }

  #carryOut(effect: StreamEffect, frame: BatchFrame | null): void {
    switch (effect.kind) {
      case "openSubscription":
        return this.#openSubscription();
      case "closeAll":
        return this.#closeAll();
      case "connectLater":
        return this.#connectLater();
      case "ask":
        return this.#ask(effect.fromSeq);
      case "endReplay":
        return this.#endReplay();
      case "rebuildLater":
        return this.#rebuildLater();
      case "apply":
        return frame === null ? undefined : this.#apply(frame);
      case "hold":
        return;
      case "tellLost":
        this.#counts.losses++;
        return this.#listener.lost(effect.why);
      case "tellRestarted":
        this.#counts.restarts++;
        return this.#listener.restarted();
      case "tellLive":
        return this.#tellLive();
      case "tellFailed":
        return this.#listener.failed(effect.why);
    }
  }

  #openSubscription(): void {
    const { sockets, timers, settings } = this.#tools;
    const lost = (why: string) => void this.#input({ kind: "disconnected", why });
    this.#cancelConnect = timers.after(settings.connectLimitMs, () =>
      lost(`${this.#address.events} did not answer within ${settings.connectLimitMs} ms.`),
    );
    this.#subscription = sockets.subscribe(this.#address, {
      connected: () => {
        this.#cancelConnect();
        this.#checkWhenQuiet();
        this.#input({ kind: "connected" });
      },
      disconnected: lost,
      message: (frames) => {
        this.#heardMs = this.#tools.clock.nowMs();
        const batch = readLiveMessage(frames);
        if (batch === null) this.#counts.strayMessages++;
        else if (!this.#heard.push(batch)) this.#missed();
        this.#tools.turns.ask(this.#slice);
      },
    });
  }

  #missed(): void {
    this.#counts.droppedMessages++;
    this.#hasMissed = true;
  }

  /** With the sockets goes everything that came by them: the next connection may be to another process. */
  #closeAll(): void {
    this.#cancelConnect();
    this.#cancelCheck();
    this.#cancelRebuild?.();
    this.#cancelRebuild = null;
    this.#endReplay();
    this.#subscription?.close();
    this.#subscription = null;
    this.#heard.clear();
  }

  #connectLater(): void {
    const { timers, random, settings } = this.#tools;
    const bounds = { firstMs: settings.connectFirstDelayMs, maxMs: settings.connectMaxDelayMs };
    const delayMs = backOffMs(this.#connectFailures++, bounds, random);
    this.#cancelConnect = timers.after(delayMs, () => void this.#input({ kind: "connect" }));
  }

  #ask(fromSeq: number): void {
    const { replay } = this.#address;
    if (replay === null) return;
    this.#counts.replays++;
    this.#answer = new ReplayAnswer({ ...this.#address, replay }, fromSeq, this.#tools, {
      arrived: (isStray) => {
        if (isStray) this.#counts.strayMessages++;
        this.#tools.turns.ask(this.#slice);
      },
      failed: (why) => void this.#input({ kind: "repeatFailed", why }),
    });
    const isCheck = this.#state.phase === "replaying" && this.#state.goal === "check";
    if (!isCheck) this.#tellProgress();
  }

  #endReplay(): void {
    this.#counts.droppedMessages += this.#answer?.inbox.droppedMessages ?? 0;
    this.#answer?.close();
    this.#answer = null;
  }

  #rebuildLater(): void {
    if (this.#cancelRebuild !== null) return;
    const { timers, random, settings } = this.#tools;
    const bounds = { firstMs: settings.rebuildFirstDelayMs, maxMs: settings.rebuildMaxDelayMs };
    const delayMs = backOffMs(this.#rebuildFailures++, bounds, random);
    this.#cancelRebuild = timers.after(delayMs, () => {
      this.#cancelRebuild = null;
      this.#input({ kind: "rebuildDue" });
    });
  }

  #checkWhenQuiet(): void {
    const { timers, clock, settings } = this.#tools;
    this.#heardMs = clock.nowMs();
    const check = (): void => {
      const isQuiet = clock.nowMs() - this.#heardMs >= settings.checkAfterMs;
      if (isQuiet) this.#heardMs = clock.nowMs();
      this.#cancelCheck = timers.after(this.#heardMs + settings.checkAfterMs - clock.nowMs(), check);
      if (isQuiet) this.#input({ kind: "checkDue" });
    };
    this.#cancelCheck();
    this.#cancelCheck = timers.after(settings.checkAfterMs, check);
  }

  #tellLive(): void {
    const place = this.#place;
    this.#connectFailures = 0;
    const complete = place?.sinceSeq === 0;
    if (complete && !place.short) this.#rebuildFailures = 0;
    this.#listener.live({ sinceSeq: place?.sinceSeq ?? null, complete });
  }

  #tellProgress(): void {
    this.#toldProgress = this.#answer?.toldBatches ?? 0;
    this.#listener.progress({ batches: this.#toldProgress, seq: this.#place?.cursor ?? null });
  }

  #tellProgressIfAny(): void {
    if (this.#answer !== null && this.#answer.toldBatches > this.#toldProgress) this.#tellProgress();
  }

  #apply({ seq, payload }: BatchFrame): void {
    const batch = decodeKvMessage(payload, this.#rank, seq);
    this.#last = { payload, publishedMs: batch.publishedMs };
    this.#counts.batches++;
    if (this.#answer !== null) this.#answer.toldBatches++;
    this.#counts.events += batch.events.length;
    this.#counts.unreadableEvents += batch.unreadableEvents;
    this.#unitsLeft -= unitsOf(batch);
    this.#listener.batch(batch);
  }

  #hasWork(): boolean {
    if (this.#state.phase === "live") return this.#heard.size > 0;
    return this.#state.phase === "replaying" && (this.#answer?.inbox.size ?? 0) > 0;
  }

  /** Tells some of what was received, in a turn of its own; true if there is more. */
  #tellSome(): boolean {
    this.#unitsLeft = UNITS_A_SLICE;
    while (this.#unitsLeft > 0 && this.#hasWork()) {
      // What is told already, or void, is cheap.
      this.#unitsLeft--;
      if (this.#state.phase === "live") this.#takeHeard();
      else this.#takeRepeated();
    }
    this.#tellProgressIfAny();
    if (this.#hasMissed && this.#state.phase === "live" && this.#heard.size === 0) {
      // If nothing follows what was dropped, no gap would show.
      this.#hasMissed = false;
      this.#input({ kind: "checkDue" });
    }
    return this.#hasWork();
  }

  #takeHeard(): void {
    const batch = this.#heard.peek();
    if (batch === undefined) return;
    const held = this.#input({ kind: "heard", ...this.#facts(batch) }, batch);
    if (!held) this.#heard.shift();
  }

  #takeRepeated(): void {
    const inbox = this.#answer?.inbox;
    const message = inbox?.peek();
    if (message === undefined) return;
    inbox?.shift();
    if (message === "end") {
      this.#tellProgressIfAny();
      this.#input({ kind: "repeatEnded" });
    } else this.#input({ kind: "repeated", ...this.#facts(message) }, message);
  }

  #facts({ seq, payload }: BatchFrame): { seq: number; same: boolean; newer: boolean } {
    const cursor = this.#place?.cursor ?? -1;
    if (seq > cursor || this.#last === null) return { seq, same: false, newer: false };
    return {
      seq,
      same: seq === cursor && payload.equals(this.#last.payload),
      newer: readPublishedMs(payload) > this.#last.publishedMs,
    };
  }
}
