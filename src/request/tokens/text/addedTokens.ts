/** A token that is found in the text before anything else is done to it, such as `<|im_start|>`. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Not inside a word. */
  readonly singleWord: boolean;
  /** Swallows the white space before it, after it. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  /** Looked for in the normalized text, after the others. */
  readonly normalized: boolean;
}

interface Node {
  readonly next: Map<number, Node>;
  token: AddedToken | null;
}

const SPACE = /^\p{White_Space}$/u;
const WORD = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;

/** Finds added tokens: the leftmost, of those that begin at one place the longest. */
export class AddedTokens {
  readonly #root: Node = { next: new Map(), token: null };
  /** Matches any character that a token begins with; null if there are no tokens. */
  readonly #begins: RegExp | null;

  /** @param spelling what a token looks like in the text; a normalized token may look different */
  constructor(tokens: readonly AddedToken[], spelling: (token: AddedToken) => string = (token) => token.content) {
    const firsts = new Set<string>();
    for (const token of tokens) {
      const text = spelling(token);
      if (text === "") continue;
      firsts.add(text[0]!);
      let node = this.#root;
      for (let i = 0; i < text.length; i++) {
        const unit = text.charCodeAt(i);
        let child = node.next.get(unit);
        if (child === undefined) node.next.set(unit, (child = { next: new Map(), token: null }));
        node = child;
      }
      node.token = token;
    }
    const units = [...firsts].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    this.#begins = units.length === 0 ? null : new RegExp(`[${units.join("")}]`, "g");
  }

  /** Tells the text between tokens, and the tokens, in their order. Empty texts are not told. */
  split(text: string, onText: (text: string, start: number) => void, onToken: (id: number) => void): void {
    let start = 0;
    const begins = this.#begins;
    if (begins !== null) {
      begins.lastIndex = 0;
      for (let candidate = begins.exec(text); candidate !== null; candidate = begins.exec(text)) {
        const found = this.#longestAt(text, candidate.index);
        if (found === null) continue;
        const end = candidate.index + found.length;
        // The pattern may have been used for another text meanwhile.
        begins.lastIndex = end;
        if (found.token.singleWord && isInsideWord(text, candidate.index, end)) continue;
        let textEnd = candidate.index;
        let next = end;
        if (found.token.lstrip) while (textEnd > start && SPACE.test(text[textEnd - 1]!)) textEnd--;
        if (found.token.rstrip) while (next < text.length && SPACE.test(text[next]!)) next++;
        if (textEnd > start) onText(text.slice(start, textEnd), start);
        onToken(found.token.id);
        // The search goes on at `end`, as it does in Hugging Face's tokenizers: white space may be a token itself.
        start = next;
      }
    }
    if (start < text.length) onText(start === 0 ? text : text.slice(start), start);
  }

  #longestAt(text: string, at: number): { token: AddedToken; length: number } | null {
    let node: Node | undefined = this.#root;
    let longest: { token: AddedToken; length: number } | null = null;
    for (let i = at; node !== undefined; node = node.next.get(text.charCodeAt(i++))) {
      if (node.token !== null) longest = { token: node.token, length: i - at };
      if (i === text.length) break;
    }
    return longest;
  }
}

function isInsideWord(text: string, start: number, end: number): boolean {
  // Half a surrogate pair is no word character, so two units before and after are looked at.
  const before = Array.from(text.slice(Math.max(0, start - 2), start)).at(-1);
  const after = end < text.length ? String.fromCodePoint(text.codePointAt(end)!) : undefined;
  return (before !== undefined && WORD.test(before)) || (after !== undefined && WORD.test(after));
}
