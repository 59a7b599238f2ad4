import { CLOSE_BRACE, OPEN_BRACE } from "./ascii.ts";
import { passValue, skipSpace } from "./jsonBytes.ts";
import { Members } from "./jsonMembers.ts";
import { isNull, isTrue } from "./jsonScalars.ts";
import type { Edit } from "./span.ts";

const INCLUDE_USAGE = `"include_usage":true`;

/** What the body says in `stream_options`, and the edit that makes it ask for the usage chunk. */
export class UsageOption {
  /** `stream_options.include_usage` is true. */
  wanted = false;
  #edit: Edit | "insert" | null = "insert";

  /** Reads the value of `stream_options` at `at`; returns its end. */
  read(bytes: Buffer, at: number): number {
    this.wanted = false;
    if (bytes[at] !== OPEN_BRACE) {
      const end = passValue(bytes, at, 1, null);
      // Neither object nor null: left for the engine to refuse.
      this.#edit = isNull(bytes, at) ? { start: at, end, replacement: `{${INCLUDE_USAGE}}` } : null;
      return end;
    }
    const empty = bytes[skipSpace(bytes, at + 1)] === CLOSE_BRACE;
    this.#edit = { start: at + 1, end: at + 1, replacement: empty ? INCLUDE_USAGE : `${INCLUDE_USAGE},` };
    const members = new Members(bytes, at, 1);
    while (members.next()) {
      members.at = passValue(bytes, members.value, 2, null);
      if (!members.keyIs("include_usage")) continue;
      this.wanted = isTrue(bytes, members.value);
      this.#edit = { start: members.value, end: members.at, replacement: "true" };
    }
    return members.at;
  }

  /** @param afterBrace where a member can be inserted into the body's object; @param alone if nothing follows it */
  edit(afterBrace: number, alone: boolean): Edit | null {
    if (this.wanted) return null;
    if (this.#edit !== "insert") return this.#edit;
    const member = `"stream_options":{${INCLUDE_USAGE}}`;
    return { start: afterBrace, end: afterBrace, replacement: alone ? member : `${member},` };
  }
}
