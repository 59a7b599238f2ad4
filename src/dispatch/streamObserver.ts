import type { Usage } from "#src/scheduler/outcome.ts";
import { BodyTail } from "./bodyTail.ts";
import { merge, readUsage } from "./usage.ts";

const LF = 10;
const DATA = Buffer.from("data:");
/** In the middle of a line whose start has been looked at. */
const REST_OF_LINE = -1;
/** What ends a complete stream: of chats and completions, of Anthropic's messages, of responses. */
const LAST_EVENT = /^data: ?\[DONE\]\s*$|"type"\s*:\s*"(?:message_stop|response\.(?:completed|incomplete|failed))"/u;
/** Announcements that an engine sends before it has computed anything; no chunk of chat or completion is one. */
const ANNOUNCEMENT = /"type"\s*:\s*"(?:response\.(?:created|queued|in_progress)|message_start|ping)"/u;
/** An announcement is shorter than this; more without a token is taken for one. */
const ANNOUNCEMENTS_MAX_CHARS = 65_536;

/**
 * Watches a stream of server-sent events pass, in pieces split anywhere, and changes nothing. An event is a line that
 * begins with `data:`; engines send one per event.
 *
 * The first token is the first event that is not an announcement. vLLM's and SGLang's first chunk carries a role and no
 * text, but is sent when the first token is there.
 */
export class StreamObserver {
  /** Events so far, announcements and `[DONE]` included. */
  events = 0;
  /** NaN until the first token. */
  firstTokenMs = Number.NaN;
  /** Whether the last byte seen ended a line. */
  #matched = 0;
  #announcements = "";
  #announced = 0;
  readonly #tail = new BodyTail();

  /** Events that carried output, as far as is known before the usage arrives. */
  get tokenEvents(): number {
    return Math.max(0, this.events - this.#announced);
  }

  /** Looks at `bytes[start, end)`, which arrived at `nowMs`. Returns how many events began in it. */
  observe(bytes: Buffer, start: number, end: number, nowMs: number): number {
    const before = this.events;
    this.#scan(bytes, start, end);
    this.#tail.append(bytes, start, end);
    if (Number.isNaN(this.firstTokenMs)) this.#awaitFirstToken(bytes.toString("latin1", start, end), nowMs);
    return this.events - before;
  }

  /** Whether the stream says that it is complete. */
  get done(): boolean {
    if (this.midEvent) return false;
    const text = this.#tail.text();
    return LAST_EVENT.test(text.slice(text.lastIndexOf("\ndata:") + 1));
  }

  /** Whether something was sent after the last blank line. */
  get midEvent(): boolean {
    return this.events > 0 && !/\r?\n\r?\n$/u.test(this.#tail.text().slice(-4));
  }

  usage(): Usage {
    return merge(readUsage(this.#tail.text()), readUsage(this.#announcements));
  }

  #scan(bytes: Buffer, start: number, end: number): void {
    let matched = this.#matched;
    for (let i = start; i < end; i++) {
      const byte = bytes[i];
      if (byte === LF) matched = 0;
      else if (matched !== REST_OF_LINE) {
        matched = byte === DATA[matched] ? matched + 1 : REST_OF_LINE;
        if (matched === DATA.length) {
          this.events++;
          matched = REST_OF_LINE;
        }
      }
    }
    this.#matched = matched;
  }

  #awaitFirstToken(piece: string, nowMs: number): void {
    this.#announcements += piece;
    const lines = this.#announcements.split("\n");
    lines.pop();
    let announced = 0;
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      if (!ANNOUNCEMENT.test(line)) {
        this.firstTokenMs = nowMs;
        break;
      }
      announced++;
    }
    this.#announced = announced;
    if (this.#announcements.length > ANNOUNCEMENTS_MAX_CHARS) this.firstTokenMs = nowMs;
    // Only an announcement's own usage is of interest later on.
    if (!Number.isNaN(this.firstTokenMs) && announced === 0) this.#announcements = "";
  }
}
