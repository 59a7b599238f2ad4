import type { Cancel } from "../../../determinism/timers.ts";
import { toRouterError } from "../../../errors/routerError.ts";
import { engineFailed } from "../../answers.ts";
import type { AskEngine } from "../../engineAdapter.ts";
import { backOffMs } from "../stream/backOff.ts";
import type { StreamListener } from "../stream/streamListener.ts";
import type { StreamTools } from "../stream/streamTools.ts";
import { UNITS_A_SLICE, unitsOf } from "../stream/turns.ts";
import { PulledEvents, type PulledEvent } from "./pulledEvents.ts";

/** The engine itself waits up to two seconds for events before it answers with none. */
const PULL_EVERY_MS = 200;
const PULL_LIMIT_MS = 10_000;

interface Rank {
  readonly listener: StreamListener;
  /** Null: nothing was told yet. */
  cursor: number | null;
  sinceSeq: number | null;
  isLive: boolean;
}

/**
 * The events of TensorRT-LLM by asking for them again and again. Asking takes them out of the engine's buffer, so there
 * can be one consumer only, and what was lost cannot be repeated: a number that is missing (the buffer ran over, an
 * answer got lost, somebody else asked) costs the view.
 */
export class TrtPullStream {
  readonly #ask: AskEngine;
  readonly #tools: StreamTools;
  readonly #listenerOf: (rank: number) => StreamListener;
  readonly #reader: PulledEvents;
  readonly #ranks = new Map<number, Rank>();
  readonly #slice = () => this.#tellSome();
  #waiting: readonly PulledEvent[] = [];
  #told = 0;
  #failures = 0;
  #stopped = false;
  #cancel: Cancel;

  constructor(
    ask: AskEngine,
    listenerOf: (rank: number) => StreamListener,
    tools: StreamTools,
    blockTokens: number | null,
  ) {
    this.#ask = ask;
    this.#listenerOf = listenerOf;
    this.#tools = tools;
    this.#reader = new PulledEvents(blockTokens);
    this.#cancel = tools.timers.after(0, () => void this.#pull());
  }

  /** What was told is void. The buffer of the engine has only what came after. */
  startOver(): void {
    for (const [number, rank] of this.#ranks) {
      this.#reader.forget(number);
      rank.cursor = null;
      rank.sinceSeq = null;
      rank.isLive = false;
      rank.listener.lost("rebuild");
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
    this.#waiting = [];
  }

  async #pull(): Promise<void> {
    try {
      const answer = await this.#ask("/kv_cache_events", { method: "POST", timeoutMs: PULL_LIMIT_MS });
      const events = answer.status === 200 ? this.#reader.read(answer.body) : null;
      if (events === null) throw engineFailed(`POST /kv_cache_events answers ${answer.status} and no list of events.`);
      if (this.#stopped) return;
      this.#failures = 0;
      this.#waiting = events;
      this.#told = 0;
      this.#tools.turns.ask(this.#slice);
    } catch (caught) {
      if (this.#stopped) return;
      const why = toRouterError(caught).message;
      for (const rank of this.#knownRanks()) {
        rank.isLive = false;
        rank.listener.failed(why);
      }
      const { settings, random } = this.#tools;
      const bounds = { firstMs: settings.connectFirstDelayMs, maxMs: settings.connectMaxDelayMs };
      this.#pullAfter(backOffMs(this.#failures++, bounds, random));
    }
  }

  #pullAfter(delayMs: number): void {
    this.#cancel = this.#tools.timers.after(delayMs, () => void this.#pull());
  }

  /** An engine that told of no rank yet has at least one. */
  #knownRanks(): Iterable<Rank> {
    if (this.#ranks.size === 0) this.#rank(0);
    return this.#ranks.values();
  }

  #rank(rank: number): Rank {
    let known = this.#ranks.get(rank);
    if (known === undefined) {
      known = { listener: this.#listenerOf(rank), cursor: null, sinceSeq: null, isLive: false };
      this.#ranks.set(rank, known);
    }
    return known;
  }

  #tellSome(): boolean {
    let units = UNITS_A_SLICE;
    while (units > 0 && this.#told < this.#waiting.length) {
      const pulled = this.#waiting[this.#told++];
      if (pulled !== undefined) units -= this.#tell(pulled);
    }
    if (this.#told < this.#waiting.length) return true;
    this.#waiting = [];
    if (this.#stopped) return false;
    for (const rank of this.#knownRanks()) {
      if (rank.isLive) continue;
      rank.isLive = true;
      rank.listener.live({ sinceSeq: rank.sinceSeq, complete: rank.sinceSeq === 0 });
    }
    this.#pullAfter(PULL_EVERY_MS);
    return false;
  }

  /** The units that it cost. */
  #tell({ eventId, rank: number, events }: PulledEvent): number {
    const rank = this.#rank(number);
    const follows = rank.cursor === null || eventId === rank.cursor + 1;
    if (!follows) {
      rank.isLive = false;
      if (eventId > (rank.cursor ?? -1)) {
        rank.listener.lost("gap");
      } else {
        this.#reader.forget(number);
        rank.listener.restarted();
      }
    }
    if (rank.cursor === null || !follows) rank.sinceSeq = eventId;
    rank.cursor = eventId;
    const batch = {
      rank: number,
      seq: eventId,
      publishedMs: 0,
      events: events ?? [],
      unreadableEvents: events ? 0 : 1,
    };
    rank.listener.batch(batch);
    return unitsOf(batch);
  }
}
