import { Packr } from "msgpackr";

const packr = new Packr({ useRecords: false, variableMapSize: true });

/** Any value as msgpack, as the engines write it: no extensions of the encoder's own. */
export function msgpack(value: unknown): Buffer {
  return packr.pack(value);
}

export interface StoredEvent {
  readonly type: "BlockStored";
  readonly block_hashes: readonly (bigint | number | Uint8Array)[];
  readonly parent_block_hash: bigint | number | Uint8Array | null;
  readonly token_ids: readonly unknown[];
  readonly block_size: number;
  readonly [more: string]: unknown;
}

/** A stored event as vLLM 0.24 and later write it. */
export function stored(
  hashes: readonly bigint[],
  parent: bigint | null,
  tokens: readonly unknown[],
  blockTokens: number,
  more: Readonly<Record<string, unknown>> = {},
): StoredEvent {
  return {
    type: "BlockStored",
    block_hashes: hashes,
    parent_block_hash: parent,
    token_ids: tokens,
    block_size: blockTokens,
    lora_id: null,
    medium: "GPU",
    lora_name: null,
    ...more,
  };
}

export function removed(hashes: readonly bigint[], more: Readonly<Record<string, unknown>> = {}): unknown {
  return { type: "BlockRemoved", block_hashes: hashes, medium: "GPU", ...more };
}

export const CLEARED = { type: "AllBlocksCleared" };

export function batch(events: readonly unknown[], seconds = 1733.5, rank: number | null = 0): Buffer {
  return msgpack([seconds, events, rank]);
}
