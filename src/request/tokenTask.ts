import type { TokenizerSource } from "./tokenizerSource.ts";
import type { TokenFallbackReason } from "./tokens/tokenFallback.ts";
import type { TokenizedApi } from "./tokens/promptTokens.ts";

/** What the chain of a prompt depends on besides its tokens. */
export interface TokenChainOptions {
  readonly adapter: string | null;
  readonly salt: string | null;
  readonly blockTokens: number;
}

/** To a token thread. Answered in the order of asking. */
export type TokenQuestion =
  /** All tokenizers that will be used from now on, by model. */
  | { readonly kind: "load"; readonly sources: ReadonlyMap<string, TokenizerSource> }
  | {
      readonly kind: "identify";
      readonly model: string;
      readonly api: TokenizedApi;
      readonly body: Uint8Array;
      readonly options: TokenChainOptions;
    };

export type TokenAnswer =
  /** What could not be loaded, by model; if anything, what was used before stays. */
  | { readonly kind: "loaded"; readonly problems: ReadonlyMap<string, string> }
  | { readonly kind: "chain"; readonly hashes: BigUint64Array; readonly promptTokens: number }
  | { readonly kind: "fallback"; readonly reason: TokenFallbackReason };
