import { detached } from "../detached.ts";
import { TokenWriter } from "../tokenWriter.ts";
import type { WordModel } from "./wordModel.ts";

/** Words longer than this come once. */
const MAX_WORD_LENGTH = 64;
/** Below this V8 copies what it cuts out. */
const SLICED_LENGTH = 13;

/**
 * Remembers what words became. Two generations of half the bound each: a word that is used again moves to the young one,
 * the old one is dropped whole when the young one is full.
 */
export class WordCache implements WordModel {
  readonly #model: WordModel;
  readonly #generationWords: number;
  #young = new Map<string, number | Uint32Array>();
  #old = new Map<string, number | Uint32Array>();
  readonly #found = new TokenWriter();

  constructor(model: WordModel, maxWords = 65_536) {
    this.#model = model;
    this.#generationWords = Math.ceil(maxWords / 2);
  }

  /** Words remembered now. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  encode(word: string, out: TokenWriter): void {
    if (word.length > MAX_WORD_LENGTH) {
      this.#model.encode(word, out);
      return;
    }
    const tokens = this.#young.get(word) ?? this.#recall(word);
    if (typeof tokens === "number") out.push(tokens);
    else out.pushAll(tokens);
  }

  #recall(word: string): number | Uint32Array {
    let tokens = this.#old.get(word);
    if (tokens === undefined) {
      this.#found.clear();
      this.#model.encode(word, this.#found);
      const ids = this.#found.copy();
      tokens = ids.length === 1 ? ids[0]! : ids;
    } else this.#old.delete(word);
    if (this.#young.size >= this.#generationWords) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(word.length < SLICED_LENGTH ? word : detached(word), tokens);
    return tokens;
  }
}
