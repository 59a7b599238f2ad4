import type { HandoffName, Role } from "#src/discovery/replicaSpec.ts";
import type { BodyMembers } from "#src/request/legs/bodyMembers.ts";
import type { Edit } from "#src/request/span.ts";

/** Why a request is not split. Label values of a metric. */
export type UnsplitReason =
  | "no_output"
  | "api"
  | "sequences"
  | "beam_search"
  | "prompt_logprobs"
  | "tool_choice"
  | "stored_state";

/** The prefill side of a pair, as far as the decode side has to be told of it. */
export interface PrefillEnd {
  /** Host of its HTTP address, without brackets. */
  readonly host: string;
  readonly bootstrapHost: string | null;
  readonly bootstrapPort: number | null;
  /** `engine_id` of its KV connector, where the protocol has to name it beforehand. */
  readonly engineId: string | null;
  readonly tensorParallelSize: number;
  readonly pipelineParallelSize: number;
}

/** What the router mints for one hand-off. */
export interface HandoffIds {
  /** The same on both legs, as their `X-Request-Id`. */
  readonly requestId: string;
  /** 0 ≤ room < 2^63, unique. Never a JavaScript number: those are exact to 2^53 only. */
  readonly room: bigint;
}

/** Rewriting that is none of the protocol's business. */
export interface LegRewrite {
  readonly model: string | null;
  readonly askUsage: boolean;
}

/**
 * What the decode leg is sent. `whole`: as if there had been no prefill leg, because that left nothing to fetch; the decode
 * engine computes the prompt itself.
 */
export interface DecodeBody {
  readonly kind: "handed_over" | "whole";
  readonly edits: readonly Edit[];
}

/** One way by which KV gets from a prefill to a decode engine. Pure and stateless: bodies in, edits out. */
export interface Handoff {
  readonly name: HandoffName;
  /** `in_turn`: the decode leg needs the prefill leg's answer. `together`: both leave at once. */
  readonly order: "in_turn" | "together";
  /**
   * How long the prefill engine keeps the KV of an answered leg for the decode engine to fetch, unless it is configured
   * otherwise; null: it keeps nothing once it has answered.
   */
  readonly leaseMs: number | null;
  /** Only KV that the decode engine has not cached is moved. */
  readonly reusesDecodeCache: boolean;
  /** Whether an engine of this role can also serve a whole request by itself. */
  servesWhole(role: Role, generates: boolean): boolean;
  /** Null: the request can be split. */
  obstacle(request: BodyMembers): UnsplitReason | null;
  prefillEdits(request: BodyMembers, end: PrefillEnd, ids: HandoffIds, rewrite: LegRewrite): readonly Edit[];
  /** @param answer body of the prefill leg's answer (status 200); null where the legs leave together */
  decodeBody(
    request: BodyMembers,
    end: PrefillEnd,
    ids: HandoffIds,
    rewrite: LegRewrite,
    answer: Buffer | null,
  ): DecodeBody;
}
