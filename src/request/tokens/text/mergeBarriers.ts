import type { BpeSpec } from "../bpe/bpeSpec.ts";
import type { Cut } from "./cuts.ts";

/** SentencePiece's space. */
export const SPACE_MARK = "\u2581";

/** Characters before which a cut is looked for: words begin with the first, lines end with the second. */
const BARRIERS = [SPACE_MARK, "\n"];

/**
 * Cuts for encodings that have no pre-tokenizer, so that not every prompt is one long word. A merge joins neighbours
 * into a token of the vocabulary: where no token holds these two characters side by side, nothing is ever merged across
 * them, and cutting there changes nothing.
 */
export function cutAtBarriers({ vocab }: Pick<BpeSpec, "vocab">): Cut {
  const joined = new Map(BARRIERS.map((barrier) => [barrier, new Set<string>()]));
  for (const token of vocab.keys()) {
    for (const barrier of BARRIERS) {
      for (let at = token.indexOf(barrier, 1); at >= 0; at = token.indexOf(barrier, at + 1))
        joined.get(barrier)!.add(unitBefore(token, at));
    }
  }
  return (text) => {
    const words: string[] = [];
    let start = 0;
    for (let at = 1; at < text.length; at++) {
      const before = joined.get(text[at]!);
      if (before === undefined || before.has(unitBefore(text, at))) continue;
      words.push(text.slice(start, at));
      start = at;
    }
    if (start < text.length) words.push(text.slice(start));
    return words;
  };
}

/** The half of a surrogate pair will do: the other half only makes more pairs look alike. */
function unitBefore(text: string, at: number): string {
  return text[at - 1]!;
}
