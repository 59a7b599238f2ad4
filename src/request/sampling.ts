import { OPEN_BRACE, OPEN_BRACKET } from "./ascii.ts";
import { fieldsOf, OUTPUT_LIMITS } from "./fields.ts";
import type { Field } from "./fieldTable.ts";
import { passValue } from "./jsonBytes.ts";
import { Elements, Members } from "./jsonMembers.ts";
import { readNumber } from "./jsonScalars.ts";
import { MemberRemoval } from "./memberRemoval.ts";
import type { Span } from "./span.ts";

/** How much output is asked for: at the top level, or in an object such as `sampling_params`. */
export class Sampling {
  readonly #limits: (number | null)[] = [];
  #n: number | null = null;

  /** The limit that the engine would obey; null if there is none that makes sense. */
  maxOutputTokens(): number | null {
    for (let rank = OUTPUT_LIMITS - 1; rank >= 0; rank--) {
      const limit = this.#limits[rank];
      if (limit !== undefined && limit !== null) return limit;
    }
    return null;
  }

  sequencesPerPrompt(): number {
    return Math.max(1, this.#n ?? 1);
  }

  /** Reads `max_tokens`, its siblings, or `n`; returns the end. */
  readCount(field: Field, bytes: Buffer, at: number, depth: number): number {
    const value = readNumber(bytes, at);
    const count = value !== null && Number.isSafeInteger(value) && value >= 0 ? Math.abs(value) : null;
    if (field.kind === "sequences") this.#n = count;
    else this.#limits[field.rank] = count;
    return passValue(bytes, at, depth, null);
  }

  /** Reads settings in an object of their own, or a list of such (one per prompt); forbidden members are stripped. */
  readSettings(bytes: Buffer, at: number, depth: number, stripped: Span[]): number {
    if (bytes[at] === OPEN_BRACKET) {
      const list = new Elements(bytes, at, depth);
      while (list.next()) list.at = this.readSettings(bytes, list.at, depth + 1, stripped);
      return list.at;
    }
    if (bytes[at] !== OPEN_BRACE) return passValue(bytes, at, depth, null);
    const fields = fieldsOf("other");
    const removal = new MemberRemoval(stripped);
    const members = new Members(bytes, at, depth);
    while (members.next()) {
      const { value } = members;
      const field = fields.find(bytes, members.keyOpen, members.keyClose);
      if (field?.kind === "forbidden") {
        members.at = passValue(bytes, value, depth + 1, null);
        removal.remove(members);
        continue;
      }
      removal.keep(members);
      if (field?.kind === "settings") members.at = this.readSettings(bytes, value, depth + 1, stripped);
      else if (field?.kind === "outputLimit" || field?.kind === "sequences") {
        members.at = this.readCount(field, bytes, value, depth + 1);
      } else members.at = passValue(bytes, value, depth + 1, null);
    }
    removal.end();
    return members.at;
  }
}
