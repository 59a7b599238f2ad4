/** Openers and words of four letters each. */
const OPENERS = [
  "Well",
  "Then",
  "When",
  "Once",
  "Now,",
  "Yes,",
  "Here",
  "This",
  "Some",
  "Most",
  "Each",
  "Both",
  "That",
  "They",
  "What",
  "Make",
];
const WORDS =
  "the and for can see run add map use any all one two few new old big low top set get put let try ask key log row bit sum job act aim air arc art bag bar bed bow box bus cab cap car cat cod cow cup cut day den dig dog dot dry due ear eat egg end era eye fan far fig fit fix fly fog fox fun gap gas gem gum hat hay hen hit hop hub ice ink jam jar jet joy keg kid kin kit lab lap law leg".split(
    " ",
  );

/** Letters of each piece of an answer. */
export const PIECE_LENGTH = 4;

export interface AnswerToken {
  readonly text: string;
  readonly id: number;
}

/** What answers are made of: pieces of one token each, so that an answer sent back as a prompt has the same tokens. */
export class AnswerWords {
  readonly #openers: readonly AnswerToken[];
  readonly #words: readonly AnswerToken[];

  /** `idOf`: the token that a text is, or null if it is several. Throws if too few of the words are one token. */
  constructor(idOf: (text: string) => number | null) {
    const known = (texts: readonly string[]): AnswerToken[] =>
      texts.flatMap((text) => {
        const id = idOf(text);
        return id === null ? [] : [{ text, id }];
      });
    this.#words = known(WORDS.map((word) => ` ${word}`));
    const openers = known(OPENERS);
    this.#openers = openers.length === 0 ? this.#words : openers;
    if (this.#words.length < LEAST_WORDS) throw new Error("The tokenizer has too few plain words of one token each.");
  }

  /** Piece `index` of the text that belongs to a seed: the same on every engine of a model. */
  token(seed: number, index: number): AnswerToken {
    const drawn = mix(seed + Math.imul(index + 1, 0x9e3779b9));
    const pieces = index === 0 ? this.#openers : this.#words;
    return pieces[drawn % pieces.length] ?? NO_TOKEN;
  }

  text(seed: number, tokens: number): string {
    let text = "";
    for (let index = 0; index < tokens; index++) text += this.token(seed, index).text;
    return text;
  }
}

/** Fewer would make all answers look alike. */
const LEAST_WORDS = 8;
const NO_TOKEN: AnswerToken = { text: "", id: 0 };

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
