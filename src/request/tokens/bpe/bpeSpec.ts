import { TokenizerError } from "../tokenizerError.ts";
import { MergeTable } from "./mergeTable.ts";

/** The `model` of a tokenizer.json, as far as it is a byte-pair encoding. */
export interface BpeSpec {
  readonly vocab: ReadonlyMap<string, number>;
  readonly merges: MergeTable;
  /** A word that is a token as a whole is that token, whatever the merges would make of it. */
  readonly ignoreMerges: boolean;
  readonly byteFallback: boolean;
  readonly unknownId: number | null;
  readonly fuseUnknown: boolean;
}

interface RawBpe {
  readonly type?: unknown;
  readonly vocab: Readonly<Record<string, number>>;
  /** `"a b"` or `["a", "b"]`. */
  readonly merges: readonly (string | readonly [string, string])[];
  readonly dropout?: number | null;
  readonly unk_token?: string | null;
  readonly continuing_subword_prefix?: string | null;
  readonly end_of_word_suffix?: string | null;
  readonly fuse_unk?: boolean;
  readonly byte_fallback?: boolean;
  readonly ignore_merges?: boolean;
}

/** @throws {TokenizerError} for other models, and for settings that no language model in use has */
export function readBpe(model: unknown): BpeSpec {
  const raw = model as RawBpe;
  if (typeof raw !== "object" || raw === null || (raw.type ?? "BPE") !== "BPE" || !Array.isArray(raw.merges))
    throw new TokenizerError(`the model is ${String(raw?.type)}, not BPE`);
  if (raw.dropout) throw new TokenizerError("the model has a dropout, so its tokens are random");
  if (raw.continuing_subword_prefix || raw.end_of_word_suffix)
    throw new TokenizerError("the model marks subwords with a prefix or suffix");
  const vocab = new Map(Object.entries(raw.vocab));
  return {
    vocab,
    merges: readMerges(raw.merges, vocab),
    ignoreMerges: raw.ignore_merges ?? false,
    byteFallback: raw.byte_fallback ?? false,
    unknownId: (raw.unk_token ? vocab.get(raw.unk_token) : null) ?? null,
    fuseUnknown: raw.fuse_unk ?? false,
  };
}

function readMerges(merges: RawBpe["merges"], vocab: ReadonlyMap<string, number>): MergeTable {
  const table = new MergeTable(merges.length);
  merges.forEach((merge, rank) => {
    let left: string;
    let right: string;
    if (typeof merge === "string") {
      const space = merge.indexOf(" ");
      left = merge.slice(0, space);
      right = merge.slice(space + 1);
    } else [left, right] = merge;
    const leftId = vocab.get(left);
    const rightId = vocab.get(right);
    const merged = vocab.get(left + right);
    if (leftId === undefined || rightId === undefined || merged === undefined)
      throw new TokenizerError(`merge ${rank} names a token that is not in the vocabulary`);
    table.add(leftId, rightId, rank, merged);
  });
  return table;
}
