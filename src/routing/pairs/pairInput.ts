import type { Random } from "#src/determinism/random.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { ClassTargets } from "../policy.ts";
import type { PricedReplica } from "../pricedReplica.ts";

/** The replicas that could take one leg, and what each has cached of the prompt. Arrays run parallel to `candidates`. */
export interface LegCandidates {
  readonly candidates: readonly PricedReplica[];
  readonly cachedTokens: ArrayLike<number>;
  readonly hostTokens: ArrayLike<number> | null;
  readonly diskTokens: ArrayLike<number> | null;
  readonly heldTokens: ArrayLike<number> | null;
  /** As of a single choice; of the prefill side only. */
  readonly lineMs: ArrayLike<number> | null;
}

/** The part of a link that choosing looks at. */
export interface PricedLink {
  /** The closest thing that both ends share, e.g. `rack`. */
  readonly level: string;
  /** Whether its figures come from hand-offs that were seen. */
  readonly learned: boolean;
  /** Of `bytes` of KV, begun at `startMs`, with what else is on the link then. */
  transferMs(bytes: number, startMs: number, nowMs: number): number;
}

/** One choice of a prefill and a decode replica. */
export interface PairInput {
  readonly request: RouteRequest;
  readonly prefill: LegCandidates;
  readonly decode: LegCandidates;
  /** By places among the candidates. */
  readonly link: (prefillAt: number, decodeAt: number) => PricedLink;
  /** No link between candidates hands so many bytes over more quickly. */
  readonly leastTransferMs: (bytes: number) => number;
  readonly kvBytesPerToken: number;
  /** Only what the decode replica has not cached is moved; false: everything is. */
  readonly reusesDecodeCache: boolean;
  /** Of each sequence. */
  readonly expectedOutputTokens: number;
  readonly nowMs: number;
  readonly random: Random;
  readonly classTargets: ClassTargets | null;
}
