import { TokenizerError } from "../tokenizerError.ts";

/** How a tokenizer.json writes a pattern; regular expressions are in Oniguruma's language. */
export interface RawPattern {
  readonly String?: string;
  readonly Regex?: string;
}

/** @throws {TokenizerError} for a regular expression that is not surely the same in JavaScript */
export function readPattern(raw: RawPattern | undefined): RegExp {
  if (raw?.String !== undefined) return new RegExp(raw.String.replaceAll(/[$()*+./?[\\\]^{|}]/g, "\\$&"), "gu");
  if (raw?.Regex === undefined) throw new TokenizerError(`${JSON.stringify(raw)} is not a pattern`);
  const source = new Translation(raw.Regex).run();
  try {
    return new RegExp(source, "gu");
  } catch (cause) {
    throw new TokenizerError(`the pattern ${raw.Regex} is not supported`, { cause });
  }
}

/** Groups that mean the same in both languages. */
const GROUP = /\((?:\?(?:i?:|<?[=!]))?/y;
const PROPERTY = /\\([pP])\{(\^?)(\w+)\}/y;
const QUANTIFIER = /[?*+]|\{\d+(?:,\d*)?\}/y;
const CODE_POINT = /\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4})/y;

const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["s", "\\p{White_Space}"],
  ["S", "\\P{White_Space}"],
  ["d", "\\p{Nd}"],
  ["D", "\\P{Nd}"],
  ["n", "\\n"],
  ["r", "\\r"],
  ["t", "\\t"],
  ["f", "\\f"],
  ["v", "\\v"],
]);
const SYNTAX = new Set("^$\\.*+?()[]{}|/-");

/**
 * Rewrites a pattern of Oniguruma (as Hugging Face's tokenizers sets it up) for JavaScript. Only what the patterns of
 * language models are made of; anything else is refused.
 */
class Translation {
  readonly #source: string;
  #at = 0;
  #out = "";

  constructor(source: string) {
    this.#source = source;
  }

  run(): string {
    while (this.#at < this.#source.length) this.#outside();
    return this.#out;
  }

  #refused(): TokenizerError {
    return new TokenizerError(`the pattern ${this.#source} is not supported (at ${this.#at})`);
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source);
  }

  #take(text: string, output = text): void {
    this.#at += text.length;
    this.#out += output;
  }

  #outside(): void {
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at)!);
    if (character === "\\") this.#escape(false);
    else if (character === "[") this.#set();
    else if (character === "(") {
      const group = this.#match(GROUP)![0];
      if (this.#source[this.#at + group.length] === "?") throw this.#refused();
      this.#take(group);
    } else if (character === ".") this.#take(".", "[^\\n]");
    else if (character === "$") this.#take("$", "(?=\\n|(?![^]))");
    else if (character === "^" || character === "]" || character === "}") throw this.#refused();
    else this.#quantifierOr(character);
  }

  #quantifierOr(character: string): void {
    const quantifier = this.#match(QUANTIFIER)?.[0];
    if (quantifier === undefined) {
      if (character === "{") throw this.#refused();
      this.#take(character);
      return;
    }
    this.#take(quantifier);
    const next = this.#source[this.#at];
    if (next === "?" && !quantifier.startsWith("{")) this.#take("?");
    // A possessive quantifier, or one after another.
    else if (next === "+" || next === "*" || next === "?") throw this.#refused();
  }

  #set(): void {
    this.#take("[");
    if (this.#source[this.#at] === "^") this.#take("^");
    for (;;) {
      const character = this.#source[this.#at];
      // A bracket opens a set within the set, two ampersands intersect.
      if (character === undefined || character === "[" || this.#source.startsWith("&&", this.#at))
        throw this.#refused();
      if (character === "]") break;
      if (character === "\\") this.#escape(true);
      else this.#take(character, "()|{}".includes(character) ? `\\${character}` : character);
    }
    this.#take("]");
  }

  #escape(inSet: boolean): void {
    const property = this.#match(PROPERTY);
    if (property !== null) {
      const [text, letter, not, name] = property;
      const negated = (letter === "P") !== (not === "^");
      this.#take(text, `\\${negated ? "P" : "p"}{${isProperty(name!) ? name : `Script=${name}`}}`);
      return;
    }
    const codePoint = this.#match(CODE_POINT)?.[0];
    if (codePoint !== undefined) {
      this.#take(codePoint);
      return;
    }
    const letter = this.#source[this.#at + 1] ?? "";
    const escape = letter === "w" ? (inSet ? WORD : `[${WORD}]`) : ESCAPES.get(letter);
    if (escape !== undefined) this.#take(`\\${letter}`, escape);
    else if (letter === "" || /\w/.test(letter)) throw this.#refused();
    else this.#take(`\\${letter}`, SYNTAX.has(letter) && !(letter === "-" && !inSet) ? `\\${letter}` : letter);
  }
}

function isProperty(name: string): boolean {
  try {
    return new RegExp(`\\p{${name}}`, "u").unicode;
  } catch {
    return false;
  }
}
