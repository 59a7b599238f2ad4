import { ByteLevelBpe } from "./bpe/byteLevelBpe.ts";
import { readBpe } from "./bpe/bpeSpec.ts";
import { CharacterBpe } from "./bpe/characterBpe.ts";
import { WordCache } from "./bpe/wordCache.ts";
import type { WordModel } from "./bpe/wordModel.ts";
import { PieceCache } from "./pieceCache.ts";
import { cutAtLines } from "./text/lineCuts.ts";
import { type AddedToken, AddedTokens } from "./text/addedTokens.ts";
import { type Normalize, normalizesByLine, readNormalizer } from "./text/normalizer.ts";
import { type PreTokenizer, readPreTokenizer } from "./text/preTokenizer.ts";
import type { TokenizerFile } from "./tokenizerFiles.ts";
import { TokenWriter } from "./tokenWriter.ts";

export interface PromptEncoderOptions {
  /** Bound on remembered pieces. */
  readonly cacheBytes?: number;
}

const DEFAULT_CACHE_BYTES = 64 * 1024 * 1024;
/** Longer pieces are cut, so that what two of them begin with alike is encoded once. */
const LONG_PIECE = 8_000;
const PART_LENGTH = 4_000;

/**
 * Text to token ids, as Hugging Face's tokenizers do it: added tokens are cut out first; what stands between two of them
 * is encoded for itself, whatever comes before and after. So every such piece can be remembered, and the next turn of a
 * conversation costs what its new messages cost.
 */
export class PromptEncoder {
  readonly #added: AddedTokens;
  readonly #addedNormalized: AddedTokens;
  readonly #normalize: Normalize | null;
  readonly #preTokenizer: PreTokenizer;
  readonly #words: WordModel;
  readonly #pieces: PieceCache;
  readonly #piece = new TokenWriter();
  readonly #cutsLines: boolean;

  /** @throws {TokenizerError} for what cannot be done exactly */
  constructor(file: TokenizerFile, addedTokens: readonly AddedToken[], options: PromptEncoderOptions = {}) {
    const spec = readBpe(file.model);
    this.#normalize = readNormalizer(file.normalizer);
    this.#preTokenizer = readPreTokenizer(file.pre_tokenizer, spec);
    this.#words = new WordCache(this.#preTokenizer.byteLevel ? new ByteLevelBpe(spec) : new CharacterBpe(spec));
    const normalized = (token: AddedToken): boolean => token.normalized && this.#normalize !== null;
    this.#added = new AddedTokens(addedTokens.filter((token) => !normalized(token)));
    this.#addedNormalized = new AddedTokens(addedTokens.filter(normalized), ({ content }) => this.#normalize!(content));
    // Added tokens that are looked for in the normalized text might reach across a cut.
    const cuts = this.#preTokenizer.keepsToLines && normalizesByLine(file.normalizer);
    this.#cutsLines = cuts && !addedTokens.some(normalized);
    this.#pieces = new PieceCache(options.cacheBytes ?? DEFAULT_CACHE_BYTES);
  }

  get cacheBytes(): number {
    return this.#pieces.bytes;
  }

  encode(text: string, out: TokenWriter): void {
    this.#added.split(
      text,
      (piece, start) => {
        if (start === 0 && this.#preTokenizer.firstDiffers) out.pushAll(this.#encodePiece(piece, true));
        else if (piece.length < LONG_PIECE || !this.#cutsLines) out.pushAll(this.#pieces.through(piece, this.#later));
        else for (const part of cutAtLines(piece, PART_LENGTH)) out.pushAll(this.#pieces.through(part, this.#later));
      },
      (id) => out.push(id),
    );
  }

  readonly #later = (piece: string): Uint32Array => this.#encodePiece(piece, false);

  /** @param first the piece begins the text, which for some encodings makes a difference */
  #encodePiece(piece: string, first: boolean): Uint32Array {
    const out = this.#piece;
    out.clear();
    const normalized = this.#normalize === null ? piece : this.#normalize(piece);
    this.#addedNormalized.split(
      normalized,
      (part, start) => {
        for (const word of this.#preTokenizer.words(part, first && start === 0)) this.#words.encode(word, out);
      },
      (id) => out.push(id),
    );
    return out.copy();
  }
}
