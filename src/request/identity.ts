/** Why a request has no identity. Counted by reason; such a request is routed by load alone. */
export type UnhashableReason = "no_prompt" | "unsupported_api" | "malformed_prompt" | "overloaded";

/** The chain of hashed blocks of a prompt, with adapter, salt and media folded in. */
export interface Identity {
  /** `hashes[i]` covers blocks 0..i (chained, 64 bit). Only full blocks. Empty if unhashable. */
  readonly hashes: BigUint64Array;
  /** Tokens per block; fractional when `approximate` (text chunks through the model's bytes per token). */
  readonly blockTokens: number;
  /** Tokens of the whole prompt; estimated when `approximate`. */
  readonly promptTokens: number;
  /** Bytes of the canonical text that was hashed; four per token where the prompt is token ids. */
  readonly promptBytes: number;
  /** True: over canonical text, not over token ids. */
  readonly approximate: boolean;
  readonly unhashable: UnhashableReason | null;
}

export const EMPTY_HASHES = new BigUint64Array(0);
