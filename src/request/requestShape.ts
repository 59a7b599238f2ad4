import { type ApiKind, generates } from "./apiKind.ts";
import { NO_PROMPT, type Prompt } from "./prompt.ts";
import type { Edit, Span } from "./span.ts";

/** What routing needs of a request, found in its bytes. Positions are byte offsets into the body that was read. */
export interface RequestShape {
  readonly api: ApiKind;
  /** How the body is written; `none` is an empty body or one that is not looked into. */
  readonly encoding: "json" | "multipart" | "none";
  readonly model: string | null;
  /** The last value of `model`, which is the one that counts in every engine: with its quotes in JSON, bare in a form. */
  readonly modelSpan: Span | null;
  readonly stream: boolean;
  /** What the engine will stop at; null: its own default (also where the value makes no sense: the engine says so). */
  readonly maxOutputTokens: number | null;
  /** `n` × number of prompts, 1..MAX_SEQUENCES. */
  readonly sequences: number;
  /** Who asks, as the client names them: `user`, `safety_identifier` or `metadata.user_id`. */
  readonly user: string | null;
  /** `prompt_cache_key` or `session_id`: requests that the client expects to share a prefix. */
  readonly promptCacheKey: string | null;
  readonly cacheSalt: string | null;
  /** vLLM's `priority`: lower is sooner. */
  readonly priority: number | null;
  /** Bytes of the output that the client predicts (`prediction.content`). */
  readonly predictedOutputBytes: number | null;
  /** The client itself asked for the usage chunk. */
  readonly wantsUsage: boolean;
  /** Makes a stream end with a usage chunk; null where the client asked already, or where it comes unasked or never. */
  readonly usageEdit: Edit | null;
  /** False for embeddings, scores and the like: prefill only. */
  readonly generates: boolean;
  readonly prompt: Prompt;
  /** Members (or form parts) that no client may send to an engine, commas included. Sorted, apart. */
  readonly strippedSpans: readonly Span[];
}

/** More sequences than any engine batches; bounds what one request can claim in the ledger. */
export const MAX_SEQUENCES = 4096;

/** The shape of a request that says nothing of itself. */
export function plainShape(api: ApiKind, encoding: RequestShape["encoding"]): RequestShape {
  return {
    api,
    encoding,
    model: null,
    modelSpan: null,
    stream: false,
    maxOutputTokens: null,
    sequences: 1,
    user: null,
    promptCacheKey: null,
    cacheSalt: null,
    priority: null,
    predictedOutputBytes: null,
    wantsUsage: false,
    usageEdit: null,
    generates: generates(api),
    prompt: NO_PROMPT,
    strippedSpans: [],
  };
}
