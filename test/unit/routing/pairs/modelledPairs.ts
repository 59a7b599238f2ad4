import type { Random } from "#src/determinism/random.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import type { ReplicaLabels } from "#src/discovery/replicaSpec.ts";
import type { Link } from "#src/fleet/links/link.ts";
import type { LinkEnd, Links } from "#src/fleet/links/links.ts";
import type { LegCandidates, PairInput } from "#src/routing/pairs/pairInput.ts";
import type { PricedReplica } from "#src/routing/pricedReplica.ts";
import { decoding, fixedLatency, H100, replica, request, slowed } from "../pool.ts";

export interface ModelledPairs {
  readonly input: PairInput;
  readonly links: (prefillAt: number, decodeAt: number) => Link;
}

/** Racks of four hosts of two replicas each, so that every kind of link occurs. */
function labelsAt(at: number, random: Random): ReplicaLabels {
  const host = `h${Math.floor(at / 2)}`;
  const rack = `r${Math.floor(at / 8)}`;
  return random.next() < 0.1 ? {} : { host, rack, zone: `z${Math.floor(at / 32)}` };
}

const ENDS = new WeakMap<Links, readonly [readonly LinkEnd[], readonly LinkEnd[]]>();

function endsOf(links: Links, prefills: number, decodes: number): readonly [readonly LinkEnd[], readonly LinkEnd[]] {
  const known = ENDS.get(links);
  if (known !== undefined) return known;
  const random = new SeededRandom(99);
  const end = (kind: string, at: number, index: number): LinkEnd => ({
    id: `${kind}${at}`,
    index,
    labels: labelsAt(at, random),
  });
  const made = [
    Array.from({ length: prefills }, (_, at) => end("p", at, at)),
    Array.from({ length: decodes }, (_, at) => end("d", at, prefills + at)),
  ] as const;
  links.members(...made);
  ENDS.set(links, made);
  return made;
}

function side(replicas: readonly PricedReplica[], promptTokens: number, random: Random): LegCandidates {
  const cached = replicas.map(() => (random.next() < 0.3 ? Math.floor((random.next() * promptTokens) / 16) * 16 : 0));
  return {
    candidates: replicas,
    cachedTokens: cached,
    hostTokens: null,
    diskTokens: null,
    heldTokens: null,
    lineMs: null,
  };
}

/** A fleet whose replicas differ in speed, load and cache, and a request of it. */
export function modelledPairs(made: {
  prefills: number;
  decodes: number;
  busy: boolean;
  links: Links;
  random: Random;
  promptTokens?: number;
  targets?: PairInput["classTargets"];
}): ModelledPairs {
  const { random, links, busy } = made;
  const promptTokens = made.promptTokens ?? 200 + random.below(12_000);
  const [from, to] = endsOf(links, made.prefills, made.decodes);
  const prefills = from.map(() => {
    const waiting = busy ? random.below(6) : 0;
    const load = {
      sequences: waiting,
      waitingSequences: waiting,
      pendingPrefillTokens: waiting * 4000,
      pendingPrefillMs: waiting * 80 * random.next(),
      reservedKvTokens: waiting * 4000,
    };
    return replica({ load, latency: fixedLatency(slowed(H100, 0.8 + 0.6 * random.next())) });
  });
  const decodes = to.map(() =>
    replica({
      load: busy ? decoding(random.below(200), 2000, 200) : {},
      latency: fixedLatency(slowed(H100, 0.8 + 0.6 * random.next())),
      slots: 160,
    }),
  );
  const link = (p: number, d: number): Link => links.between(from[p]!, to[d]!);
  const input: PairInput = {
    request: request(promptTokens),
    prefill: side(prefills, promptTokens, random),
    decode: side(decodes, promptTokens, random),
    link,
    leastTransferMs: (bytes) => links.leastMs(bytes),
    kvBytesPerToken: 131_072,
    reusesDecodeCache: true,
    expectedOutputTokens: 1 + random.below(600),
    nowMs: 0,
    random,
    classTargets: made.targets ?? null,
  };
  return { input, links: link };
}
