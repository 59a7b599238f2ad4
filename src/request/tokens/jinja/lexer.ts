import { PYTHON_SPACE, rstrip } from "./pythonText.ts";
import { failed, TemplateError } from "./templateError.ts";

export type TokenKind =
  | "text"
  | "blockBegin"
  | "blockEnd"
  | "variableBegin"
  | "variableEnd"
  | "name"
  | "string"
  | "integer"
  | "float"
  | "operator"
  | "end";

export interface Token {
  readonly kind: TokenKind;
  /** A string's value with its escapes resolved; otherwise as written. */
  readonly text: string;
}

const OPENINGS = ["{{", "{%", "{#"];
const FLOAT = /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy;
const INTEGER = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy;
const NAME = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}]*/uy;
const STRING = /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y;
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y;
const RAW = /\{%([-+]?)\s*raw\s*(-?)%\}/y;
const END_RAW = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/g;
const CLOSERS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

/**
 * Cuts a template into tokens, as Jinja does with `trim_blocks` and `lstrip_blocks`: the line break after a block tag
 * and the white space before one on its line are not text.
 */
export function tokenize(source: string): Token[] {
  return new Lexer(source).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  /** What stands at `#at` begins a line. */
  #lineStarts = true;

  constructor(source: string) {
    const lines = source.replaceAll(/\r\n?/g, "\n");
    this.#source = lines.endsWith("\n") ? lines.slice(0, -1) : lines;
  }

  run(): Token[] {
    const source = this.#source;
    while (this.#at < source.length) {
      const opening = this.#nextOpening();
      const text = source.slice(this.#at, opening);
      if (opening === source.length) {
        this.#text(text);
        break;
      }
      const marker = source.slice(opening, opening + 2);
      RAW.lastIndex = opening;
      const raw = marker === "{%" ? RAW.exec(source) : null;
      const sign = raw === null ? source[opening + 2]! : raw[1]!;
      const signed = sign === "-" || sign === "+";
      this.#text(this.#stripped(text, sign, marker));
      if (raw !== null) this.#raw(opening + raw[0].length, raw[2]!);
      else if (marker === "{#") this.#comment(opening + 2 + (signed ? 1 : 0));
      else this.#code(marker, opening + 2 + (signed ? 1 : 0));
    }
    this.#push("end", "");
    return this.#tokens;
  }

  #push(kind: TokenKind, text: string): void {
    this.#tokens.push({ kind, text });
  }

  #text(text: string): void {
    if (text !== "") this.#push("text", text);
  }

  #nextOpening(): number {
    let next = this.#source.length;
    for (const opening of OPENINGS) {
      const found = this.#source.indexOf(opening, this.#at);
      if (found >= 0 && found < next) next = found;
    }
    return next;
  }

  /** Text before a tag without what the tag takes away of it. */
  #stripped(text: string, sign: string, marker: string): string {
    if (sign === "-") return rstrip(text);
    if (sign === "+" || marker === "{{") return text;
    const lineStart = text.lastIndexOf("\n") + 1;
    if (lineStart === 0 && !this.#lineStarts) return text;
    return rstrip(text.slice(lineStart)) === "" ? text.slice(0, lineStart) : text;
  }

  /** After a tag that ends before `end`: a minus takes all white space, a block tag or comment one line break. */
  #after(end: number, minus: boolean, trims: boolean): void {
    const source = this.#source;
    let at = end;
    if (minus) while (at < source.length && PYTHON_SPACE.test(source[at]!)) at++;
    else if (trims && source[at] === "\n") at++;
    this.#at = at;
    this.#lineStarts = source[at - 1] === "\n";
  }

  #raw(start: number, startSign: string): void {
    this.#after(start, startSign === "-", false);
    END_RAW.lastIndex = this.#at;
    const end = END_RAW.exec(this.#source);
    if (end === null) throw failed("a raw block has no end");
    const text = this.#source.slice(this.#at, end.index);
    this.#text(this.#stripped(text, end[1]!, "{%"));
    this.#after(end.index + end[0].length, end[2] === "-", end[2] !== "+");
  }

  #comment(start: number): void {
    const end = this.#source.indexOf("#}", start);
    if (end < 0) throw failed("a comment has no end");
    const sign = this.#source[end - 1];
    this.#after(end + 2, end > start && sign === "-", !(end > start && sign === "+"));
  }

  #code(marker: string, start: number): void {
    const block = marker === "{%";
    this.#push(block ? "blockBegin" : "variableBegin", marker);
    const close = block ? "%}" : "}}";
    const open: string[] = [];
    const source = this.#source;
    let at = start;
    for (;;) {
      while (at < source.length && PYTHON_SPACE.test(source[at]!)) at++;
      if (at >= source.length) throw failed("a tag has no end");
      if (open.length === 0) {
        const sign = source[at]!;
        const signed = sign === "-" || (block && sign === "+");
        if (source.startsWith(close, signed ? at + 1 : at)) {
          this.#push(block ? "blockEnd" : "variableEnd", close);
          this.#after(at + (signed ? 3 : 2), sign === "-", block && sign !== "+");
          return;
        }
      }
      at = this.#token(at, open);
    }
  }

  /** The token at `at`; returns its end. */
  #token(at: number, open: string[]): number {
    const source = this.#source;
    const match = (pattern: RegExp): string | null => {
      pattern.lastIndex = at;
      return pattern.exec(source)?.[0] ?? null;
    };
    let text = match(FLOAT);
    if (text !== null) this.#push("float", text.replaceAll("_", ""));
    else if ((text = match(INTEGER)) !== null) this.#push("integer", text.replaceAll("_", ""));
    else if ((text = match(NAME)) !== null) this.#push("name", text);
    else if ((text = match(STRING)) !== null) this.#push("string", unescaped(text.slice(1, -1)));
    else if ((text = match(OPERATOR)) !== null) {
      this.#push("operator", text);
      const closer = CLOSERS[text];
      if (closer !== undefined) open.push(closer);
      else if ((text === ")" || text === "]" || text === "}") && open.pop() !== text)
        throw failed(`unexpected '${text}'`);
    } else throw failed(`unexpected character ${JSON.stringify(source[at])}`);
    return at + text.length;
  }
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\u0007",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** The escapes of Python's string literals; what is none stays as it is, backslash included. */
function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replaceAll(
    /\\(?:x([\da-f]{2})|u([\da-f]{4})|U([\da-f]{8})|([0-7]{1,3})|([\s\S]))/gi,
    (all: string, x?: string, u?: string, long?: string, octal?: string, other?: string) => {
      const hex = (all[1] === "x" && x) || (all[1] === "u" && u) || (all[1] === "U" && long);
      if (hex) return String.fromCodePoint(Number.parseInt(hex, 16));
      if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
      const escape = other ?? all.slice(1);
      if (/^[xuUN]/.test(escape)) throw new TemplateError("unsupported", `the escape ${all} is not supported`);
      return SIMPLE_ESCAPES[escape] ?? all;
    },
  );
}
