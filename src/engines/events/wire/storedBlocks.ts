import type { KvStored, KvTier } from "../kvEvent.ts";
import { NO_EXTRA_KEYS, readExtraKeys } from "./extraKeys.ts";

/** The fields of a stored event as the engines write them, each with what it means where it is absent. */
export interface StoredFields {
  engineHashes: BigUint64Array | null;
  parent: bigint | null;
  tokenIds: Uint32Array;
  /** By index, the token "ids" that were no numbers. */
  oddTokens: Map<number, string> | null;
  blockTokens: number;
  tier: KvTier;
  loraId: string | null;
  loraName: string | null;
  /** Per block, as they came. */
  extraKeys: readonly unknown[] | null;
  salt: string | null;
  group: number;
  /** Null: not told. */
  fullAttention: boolean | null;
}

const NO_TOKENS = new Uint32Array(0);

export function noFields(): StoredFields {
  return {
    engineHashes: null,
    parent: null,
    tokenIds: NO_TOKENS,
    oddTokens: null,
    blockTokens: 0,
    tier: "gpu",
    loraId: null,
    loraName: null,
    extraKeys: null,
    salt: null,
    group: 0,
    fullAttention: null,
  };
}

export function toStored(fields: StoredFields, engineHashes: BigUint64Array): KvStored {
  const blocks = engineHashes.length;
  const divides = fields.blockTokens > 0 && fields.tokenIds.length === blocks * fields.blockTokens;
  const keys =
    fields.extraKeys === null
      ? NO_EXTRA_KEYS
      : readExtraKeys(fields.extraKeys, { loraName: fields.loraName, startsPrompt: fields.parent === null });
  return {
    kind: "stored",
    engineHashes,
    parent: fields.parent,
    tokenIds: divides ? fields.tokenIds : NO_TOKENS,
    blockTokens: divides ? fields.blockTokens : 0,
    tier: fields.tier,
    group: fields.group,
    // Where only the group's number is told, the first group is the one of full attention.
    fullAttention: fields.fullAttention ?? fields.group === 0,
    loraName: fields.loraName ?? (fields.loraId === null ? null : `id:${fields.loraId}`),
    salt: fields.salt ?? keys.salt,
    blockKeys: divides ? withOddTokens(keys.blockKeys, fields, blocks) : null,
  };
}

/** Tokens that are no numbers are told apart by their text, which joins the keys of their block. */
function withOddTokens(
  keys: (string | null)[] | null,
  { oddTokens, blockTokens }: StoredFields,
  blocks: number,
): (string | null)[] | null {
  if (oddTokens === null) return keys;
  const joined = Array.from({ length: blocks }, (_, block) => keys?.[block] ?? null);
  for (const [index, text] of oddTokens) {
    const block = Math.floor(index / blockTokens);
    const before = joined[block] ?? null;
    joined[block] = before === null ? text : `${before},${text}`;
  }
  return joined;
}
