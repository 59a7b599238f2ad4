import type { BpeSpec } from "../bpe/bpeSpec.ts";
import { TokenizerError } from "../tokenizerError.ts";
import { type Cut, cutDigits, cutGpt2, cutNumbers, type RawSplit, readSplit } from "./cuts.ts";
import { keepsToLines } from "./lineCuts.ts";
import { cutAtBarriers, SPACE_MARK } from "./mergeBarriers.ts";

/** Cuts the text between two added tokens into words. */
export interface PreTokenizer {
  /** @param first the text begins the prompt */
  words(text: string, first: boolean): readonly string[];
  /** Words are spelled in the bytes of UTF-8. */
  readonly byteLevel: boolean;
  /** A long text may be cut at lines, see lineCuts.ts. */
  readonly keepsToLines: boolean;
  /** A text that begins the prompt is cut otherwise than the same text behind an added token. */
  readonly firstDiffers: boolean;
}

interface RawStep extends RawSplit {
  readonly type: string;
  readonly pretokenizers?: readonly RawStep[];
  readonly add_prefix_space?: boolean;
  readonly use_regex?: boolean;
  readonly individual_digits?: boolean;
  readonly replacement?: string;
  readonly prepend_scheme?: string;
  readonly split?: boolean;
}

/** Reads the `pre_tokenizer` of a tokenizer.json. @throws {TokenizerError} for what cannot be done exactly */
export function readPreTokenizer(raw: unknown, spec: BpeSpec): PreTokenizer {
  const steps = flattened(raw as RawStep | null);
  const last = steps.at(-1);
  if (last?.type === "ByteLevel") return byteLevel(steps.slice(0, -1), last);
  if (last?.type === "Metaspace" && steps.length === 1) return metaspace(last, spec);
  const cuts = [...steps.map(readCut), cutAtBarriers(spec)];
  return { byteLevel: false, keepsToLines: false, firstDiffers: false, words: (text) => cutAll(text, cuts) };
}

function flattened(raw: RawStep | null): RawStep[] {
  if (raw === null || raw === undefined) return [];
  return raw.type === "Sequence" ? (raw.pretokenizers ?? []).flatMap(flattened) : [raw];
}

function readCut(step: RawStep): Cut {
  if (step.type === "Split") return readSplit(step);
  if (step.type === "Digits") return step.individual_digits === true ? cutDigits : cutNumbers;
  throw new TokenizerError(`the pre-tokenizer ${step.type} is not supported here`);
}

function cutAll(text: string, cuts: readonly Cut[]): readonly string[] {
  let words: readonly string[] = [text];
  for (const cut of cuts) words = words.length === 1 ? cut(words[0]!) : words.flatMap(cut);
  return words;
}

function byteLevel(steps: readonly RawStep[], last: RawStep): PreTokenizer {
  const cuts = steps.map(readCut);
  const splitsOnly = last.use_regex === false;
  if (last.add_prefix_space === true) {
    const spaced = (word: string): string => (word.startsWith(" ") ? word : ` ${word}`);
    const wordsOf = (word: string): readonly string[] => (splitsOnly ? [spaced(word)] : cutGpt2(spaced(word)));
    const words = (text: string): readonly string[] => cutAll(text, cuts).flatMap(wordsOf);
    return { byteLevel: true, keepsToLines: false, firstDiffers: false, words };
  }
  const all = splitsOnly ? cuts : [...cuts, cutGpt2];
  const lines =
    splitsOnly &&
    steps.every(({ type }) => type === "Split") &&
    keepsToLines(steps.map(({ pattern }) => pattern?.Regex ?? ""));
  return { byteLevel: true, keepsToLines: lines, firstDiffers: false, words: (text) => cutAll(text, all) };
}

function metaspace(step: RawStep, spec: BpeSpec): PreTokenizer {
  const mark = step.replacement ?? SPACE_MARK;
  if (mark !== SPACE_MARK) throw new TokenizerError(`Metaspace with '${mark}' is not supported`);
  const scheme = step.prepend_scheme ?? (step.add_prefix_space === false ? "never" : "always");
  const cutWords: Cut = step.split === false ? cutAtBarriers(spec) : (text) => text.split(/(?=\u2581)/u);
  return {
    byteLevel: false,
    keepsToLines: false,
    firstDiffers: scheme === "first",
    words(text, first) {
      const marked = text.replaceAll(" ", SPACE_MARK);
      const prepends = scheme === "always" || (scheme === "first" && first);
      return cutWords(prepends && !marked.startsWith(SPACE_MARK) ? SPACE_MARK + marked : marked);
    },
  };
}
