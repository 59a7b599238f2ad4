import { TokenizerError } from "../tokenizerError.ts";
import { type RawPattern, readPattern } from "./pattern.ts";

/** What is done to a text before it is cut into words. */
export type Normalize = (text: string) => string;

interface RawNormalizer {
  readonly type: string;
  readonly normalizers?: readonly RawNormalizer[];
  readonly pattern?: RawPattern;
  readonly content?: string;
  readonly prepend?: string;
}

/** Whether the lines of a text can be normalized one by one (see lineCuts.ts). */
export function normalizesByLine(raw: unknown): boolean {
  if (raw === null || raw === undefined) return true;
  const { type, normalizers } = raw as RawNormalizer;
  return type === "NFC" || (type === "Sequence" && (normalizers ?? []).every(normalizesByLine));
}

/**
 * Characters that Unicode got after version 9, and that are reordered or composed. Hugging Face's tokenizers has older
 * tables, in which they stand for themselves and let nothing past. (Found by comparing all code points.)
 */
const UNKNOWN_TO_ENGINES = new RegExp(
  "([\\u07fd\\u0897-\\u089f\\u08ca-\\u08d3\\u09fe\\u0c3c\\u0d3b-\\u0d3c\\u0eba\\u1715\\u1abf-\\u1add\\u1ae0-\\u1aeb\\u1df6-\\u1dfa" +
    "\\ua82c\\u{105c9}\\u{105d2}\\u{105da}\\u{105e4}\\u{10d24}-\\u{10d27}\\u{10d69}-\\u{10d6d}\\u{10eab}-\\u{10eac}" +
    "\\u{10efa}-\\u{10efb}\\u{10efd}-\\u{10eff}\\u{10f46}-\\u{10f50}\\u{10f82}-\\u{10f85}\\u{11070}\\u{1133b}" +
    "\\u{11382}-\\u{11385}\\u{1138b}\\u{1138e}\\u{11390}-\\u{11391}\\u{113b8}\\u{113bb}\\u{113c2}\\u{113c5}" +
    "\\u{113c7}-\\u{113c9}\\u{113ce}-\\u{113d0}\\u{1145e}\\u{11839}-\\u{1183a}\\u{11930}\\u{11935}\\u{11938}" +
    "\\u{1193d}-\\u{1193e}\\u{11943}\\u{119e0}\\u{11a34}\\u{11a47}\\u{11a99}\\u{11d42}\\u{11d44}-\\u{11d45}\\u{11d97}" +
    "\\u{11f41}-\\u{11f42}\\u{1611e}-\\u{16129}\\u{1612f}\\u{16d63}\\u{16d67}-\\u{16d6a}\\u{16ff0}-\\u{16ff1}\\u{1e08f}" +
    "\\u{1e130}-\\u{1e136}\\u{1e2ae}\\u{1e2ec}-\\u{1e2ef}\\u{1e4ec}-\\u{1e4ef}\\u{1e5ee}-\\u{1e5ef}\\u{1e6e3}\\u{1e6e6}" +
    "\\u{1e6ee}-\\u{1e6ef}\\u{1e6f5}])",
  "u",
);

function composed(text: string): string {
  const normalized = text.normalize("NFC");
  // Any part of a text in normal form is in it too, so that there is nothing to look for: the usual and the cheap case.
  if (normalized === text || !UNKNOWN_TO_ENGINES.test(text)) return normalized;
  return text
    .split(UNKNOWN_TO_ENGINES)
    .map((part, i) => (i % 2 === 0 ? part.normalize("NFC") : part))
    .join("");
}

/**
 * Reads the `normalizer` of a tokenizer.json; null: none.
 *
 * @throws {TokenizerError} for kinds that language models do not use
 */
export function readNormalizer(raw: unknown): Normalize | null {
  if (raw === null || raw === undefined) return null;
  const normalizer = raw as RawNormalizer;
  switch (normalizer.type) {
    case "Sequence": {
      const steps = (normalizer.normalizers ?? []).map(readNormalizer).filter((step) => step !== null);
      if (steps.length === 0) return null;
      return (text) => steps.reduce((sofar, step) => step(sofar), text);
    }
    case "NFC":
      return composed;
    case "Prepend": {
      const prepend = normalizer.prepend ?? "";
      return (text) => (text === "" ? text : prepend + text);
    }
    case "Replace": {
      const pattern = readPattern(normalizer.pattern);
      const content = normalizer.content ?? "";
      return (text) => text.replaceAll(pattern, () => content);
    }
    default:
      throw new TokenizerError(`the normalizer ${normalizer.type} is not supported`);
  }
}
