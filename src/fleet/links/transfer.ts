import type { Link } from "./link.ts";

/** The KV of one placed request on its way: promised → under way → ended, or ended from either. */
export class Transfer {
  readonly link: Link;
  readonly bytes: number;
  #state: "promised" | "under_way" | "ended" = "promised";
  #beganMs = Number.NaN;
  #wireMs = Number.NaN;

  /** @param startMs when its prompt is expected to be computed */
  constructor(link: Link, bytes: number, startMs: number) {
    this.link = link;
    this.bytes = bytes;
    link.out.promise(bytes, startMs);
    link.into.promise(bytes, startMs);
  }

  get ended(): boolean {
    return this.#state === "ended";
  }

  /** When it began; NaN: it has not. */
  get beganMs(): number {
    return this.#beganMs;
  }

  /** The prompt is computed; the decode leg leaves now. Later calls do nothing. */
  begin(nowMs: number): void {
    if (this.#state !== "promised") return;
    const { link, bytes } = this;
    link.out.unpromise(bytes);
    link.into.unpromise(bytes);
    this.#wireMs = link.tableWireMs(bytes, nowMs, nowMs);
    link.out.begin(bytes, nowMs);
    link.into.begin(bytes, nowMs);
    this.#beganMs = nowMs;
    this.#state = "under_way";
  }

  /** It is over, or will never be. Exactly once: later calls do nothing. */
  end(nowMs: number): void {
    const { link, bytes } = this;
    if (this.#state === "promised") {
      link.out.unpromise(bytes);
      link.into.unpromise(bytes);
    } else if (this.#state === "under_way") {
      link.out.end(nowMs);
      link.into.end(nowMs);
    }
    this.#state = "ended";
  }

  /** Ends it with what is known of its length: `otherMs` of the time since it began was no transfer (a decode step). */
  arrived(otherMs: number, nowMs: number): void {
    if (this.#state === "under_way") this.link.observe(this.#wireMs, nowMs - this.#beganMs - otherMs);
    this.end(nowMs);
  }
}
