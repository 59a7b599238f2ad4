import type { Cancel } from "../../../determinism/timers.ts";
import { readReplayMessage, type ReplayMessage } from "./frames.ts";
import { Inbox } from "./inbox.ts";
import type { KvEventAddress, OpenSocket } from "./sockets.ts";
import type { StreamTools } from "./streamTools.ts";

interface AnswerEvents {
  /** The inbox has something new, or something that is no batch came. */
  arrived(isStray: boolean): void;
  failed(why: string): void;
}

/** One question for a replay, and its answer as far as it has come. Ends with its socket. */
export class ReplayAnswer {
  readonly inbox: Inbox<ReplayMessage>;
  /** Batches of it that were news. */
  toldBatches = 0;
  readonly #tools: StreamTools;
  readonly #address: string;
  readonly #events: AnswerEvents;
  readonly #socket: OpenSocket;
  #heardMs: number;
  #cancelLimit: Cancel = () => {};

  constructor(
    { replay, topic }: KvEventAddress & { replay: string },
    fromSeq: number,
    tools: StreamTools,
    events: AnswerEvents,
  ) {
    this.inbox = new Inbox(tools.budget, tools.settings.maxQueuedMessages);
    this.#tools = tools;
    this.#address = replay;
    this.#events = events;
    this.#heardMs = tools.clock.nowMs();
    this.#limitSilence();
    this.#socket = tools.sockets.askReplay(replay, fromSeq, {
      failed: (why) => events.failed(why),
      message: (frames) => {
        this.#heardMs = tools.clock.nowMs();
        const message = readReplayMessage(frames, topic);
        if (message !== null) this.inbox.push(message);
        events.arrived(message === null);
      },
    });
  }

  close(): void {
    this.#cancelLimit();
    this.#socket.close();
    this.inbox.clear();
  }

  /** One timer for an answer, and not one for each of its thousands of messages. */
  #limitSilence(): void {
    const { timers, clock, settings } = this.#tools;
    const leftMs = this.#heardMs + settings.answerLimitMs - clock.nowMs();
    this.#cancelLimit = timers.after(leftMs, () => {
      // It is not the engine's silence if this side has not come to what it sent.
      if (this.inbox.size > 0) this.#heardMs = clock.nowMs();
      if (this.#heardMs + settings.answerLimitMs > clock.nowMs()) this.#limitSilence();
      else this.#events.failed(`${this.#address} did not answer within ${settings.answerLimitMs} ms.`);
    });
  }
}
