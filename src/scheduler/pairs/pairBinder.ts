import type { Random } from "#src/determinism/random.ts";
import type { Handoff } from "#src/engines/handoff/handoff.ts";
import { CachedTokens } from "#src/fleet/cachedTokens.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { LegPool } from "#src/fleet/legCandidates.ts";
import { Transfer } from "#src/fleet/links/transfer.ts";
import type { Replica } from "#src/fleet/replica.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { PairChooser } from "#src/routing/pairs/pairChooser.ts";
import type { PricedPair } from "#src/routing/pairs/pairChooser.ts";
import type { LegCandidates, PairInput } from "#src/routing/pairs/pairInput.ts";
import type { ClassTargets } from "#src/routing/policy.ts";
import { DEFAULT_PRICE_SETTINGS } from "#src/routing/priceSettings.ts";
import type { PriceSettings } from "#src/routing/priceSettings.ts";
import type { LineMs } from "../line.ts";
import { loadAtBinding } from "../loadAtBinding.ts";
import { PrefillLeg } from "./prefillLeg.ts";

/** The cheapest pair. Valid until the binder chooses again. */
export interface ChosenPair {
  readonly priced: PricedPair;
  readonly handoff: Handoff;
  readonly prefill: Replica;
  readonly decode: Replica;
  /** Prompt tokens that the prefill side has on its GPU, and anywhere. */
  readonly gpuTokens: number;
  readonly cachedTokens: number;
}

export interface PairWish {
  readonly request: RouteRequest;
  readonly expectedOutputTokens: number;
  readonly classTargets: ClassTargets | null;
  /** By the prices of the policy; absent: by the usual ones. */
  readonly settings: PriceSettings | undefined;
  /** Price of what one replica would do alone. */
  readonly ceilingMs: number;
  /** How long it would wait in the router for a prefill replica; null: it is sent at once. */
  readonly lineMs: LineMs | null;
  readonly nowMs: number;
}

interface Side extends LegCandidates {
  readonly candidates: readonly Replica[];
}

/** Finds the cheapest pair of replicas for a request, and reserves what its prefill side will hold. */
export class PairBinder {
  readonly #fleet: Fleet;
  readonly #random: Random;
  readonly #prefillCached = new CachedTokens();
  readonly #decodeCached = new CachedTokens();
  /** By price settings, of which there are as many as policies, and by hand-off: a choice is valid until the next one. */
  readonly #choosers = new WeakMap<PriceSettings, Map<Handoff, PairChooser>>();

  constructor(fleet: Fleet, random: Random) {
    this.#fleet = fleet;
    this.#random = random;
  }

  /** Null: no two replicas of the pools have room. */
  choose(pools: readonly LegPool[], wish: PairWish): ChosenPair | null {
    const { request, nowMs } = wish;
    let best: ChosenPair | null = null;
    for (const { handoff, prefill, decode } of pools) {
      const prefills = prefill.filter((replica) => replica.hasRoom(1, nowMs));
      const decodes = decode.filter((replica) => replica.hasRoom(1, nowMs));
      if (prefills.length === 0 || decodes.length === 0) continue;
      const from = this.#side(prefills, request, this.#prefillCached, wish.lineMs);
      const to = this.#side(decodes, request, this.#decodeCached, null);
      const ceilingMs = Math.min(wish.ceilingMs, best?.priced.totalMs ?? Number.POSITIVE_INFINITY);
      const priced = this.#chooser(wish.settings, handoff).choose(this.#input(wish, handoff, from, to), ceilingMs);
      if (priced === null || (best !== null && !(priced.totalMs < best.priced.totalMs))) continue;
      best = {
        priced,
        handoff,
        prefill: prefills[priced.prefillAt]!,
        decode: decodes[priced.decodeAt]!,
        gpuTokens: from.cachedTokens[priced.prefillAt]!,
        cachedTokens: from.diskTokens![priced.prefillAt]!,
      };
    }
    return best;
  }

  /** Throws RouterError at the bound of the ledger. */
  reservePrefill(pair: ChosenPair, request: RouteRequest, nowMs: number): PrefillLeg {
    const { prefill, decode, priced, handoff, cachedTokens } = pair;
    const { ledger, index, links } = this.#fleet;
    const load = loadAtBinding(prefill, nowMs);
    const link = links.between(prefill, decode);
    const transferMs = link.transferMs(priced.transferBytes, nowMs + priced.readyMs, nowMs);
    const reservation = ledger.reserve(request, prefill, cachedTokens, 1, nowMs);
    return new PrefillLeg({
      replica: prefill,
      reservation,
      prefix: index.place(prefill.index, request.identity, nowMs),
      handoff,
      transfer: new Transfer(link, priced.transferBytes, nowMs + priced.readyMs),
      readyMs: priced.readyMs,
      transferMs,
      loadAtBinding: load,
      restoredTokens: cachedTokens - pair.gpuTokens,
    });
  }

  #side(candidates: readonly Replica[], request: RouteRequest, cached: CachedTokens, lineOf: LineMs | null): Side {
    cached.read(this.#fleet, request.identity, candidates);
    const { gpu, host, disk, held } = cached;
    const lineMs = lineOf === null ? null : candidates.map((replica, at) => lineOf(replica, gpu[at]!));
    return { candidates, cachedTokens: gpu, hostTokens: host, diskTokens: disk, heldTokens: held, lineMs };
  }

  #input(wish: PairWish, handoff: Handoff, prefill: Side, decode: Side): PairInput {
    const { links } = this.#fleet;
    const { request, expectedOutputTokens, classTargets, nowMs } = wish;
    return {
      request,
      prefill,
      decode,
      link: (prefillAt, decodeAt) => links.between(prefill.candidates[prefillAt]!, decode.candidates[decodeAt]!),
      leastTransferMs: (bytes) => links.leastMs(bytes),
      kvBytesPerToken: links.kvBytesPerToken(request.model),
      reusesDecodeCache: handoff.reusesDecodeCache,
      expectedOutputTokens,
      nowMs,
      random: this.#random,
      classTargets,
    };
  }

  #chooser(settings: PriceSettings = DEFAULT_PRICE_SETTINGS, handoff: Handoff): PairChooser {
    let ofSettings = this.#choosers.get(settings);
    if (ofSettings === undefined) this.#choosers.set(settings, (ofSettings = new Map()));
    let chooser = ofSettings.get(handoff);
    if (chooser === undefined) ofSettings.set(handoff, (chooser = new PairChooser(settings)));
    return chooser;
  }
}
