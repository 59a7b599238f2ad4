import { RouterError } from "#src/errors/routerError.ts";
import type { Members } from "./jsonMembers.ts";
import type { Span } from "./span.ts";

/** Where a member stands; `at` is the end of its value. */
export type MemberPlace = Pick<Members, "keyOpen" | "comma" | "at">;

/** Far more than there are names to remove; bounds the edits of a body that repeats them between others. */
const MAX_SPANS = 1024;

/** Collects the spans that take members out of one object and leave it valid JSON. */
export class MemberRemoval {
  readonly #spans: Span[];
  #runStart = -1;
  #runComma = -1;
  #runEnd = -1;

  constructor(spans: Span[]) {
    this.#spans = spans;
  }

  /** The member goes; its value ends at `members.at`. */
  remove(members: MemberPlace): void {
    if (this.#runStart < 0) {
      this.#runStart = members.keyOpen;
      this.#runComma = members.comma;
    }
    this.#runEnd = members.at;
  }

  /** The member stays: what was removed before it goes with the comma that stood between. */
  keep(members: MemberPlace): void {
    if (this.#runStart < 0) return;
    if (this.#spans.length >= MAX_SPANS) throw tooManyMembers();
    this.#spans.push({ start: this.#runStart, end: members.keyOpen });
    this.#runStart = -1;
  }

  /** The object is over: what was removed last goes with the comma before it. */
  end(): void {
    if (this.#runStart < 0) return;
    this.#spans.push({ start: this.#runComma < 0 ? this.#runStart : this.#runComma, end: this.#runEnd });
    this.#runStart = -1;
  }
}

function tooManyMembers(): RouterError {
  return new RouterError("invalid_request", "The body has too many members that no client may send.", {
    fault: "client",
    httpStatus: 400,
    retryable: false,
  });
}
