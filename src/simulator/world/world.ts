import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { SeededRandom } from "#src/determinism/random.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { RequestArrives } from "../events/requestArrives.ts";
import { NOTHING } from "../kernel/simEvent.ts";
import type { SimEvent } from "../kernel/simEvent.ts";
import type { Arrival, Workload } from "../workload/arrival.ts";
import { chainHashes } from "../workload/content.ts";
import { tokensOf } from "../workload/tokens.ts";
import { randomFor } from "../workload/seeds.ts";
import { Flight } from "./flight.ts";
import { ModelledEngine } from "./modelledEngine.ts";
import { ModelledRouter } from "./modelledRouter.ts";
import type { Ending, RequestRecord } from "./requestRecord.ts";
import type { RunSettings } from "./runSettings.ts";
import { Samples } from "./samples.ts";

/** Everything there is in one run. Events change it; nothing else does. */
export class World {
  nowMs = 0;
  readonly settings: RunSettings;
  readonly engines: readonly ModelledEngine[];
  readonly routers: readonly ModelledRouter[];
  readonly workload: Workload;
  /** One for each request that has arrived, in that order. */
  readonly records: RequestRecord[] = [];
  readonly samples: Samples;
  /** Draws which scrapes are lost. */
  readonly losses: SeededRandom;
  readonly #engineByName: ReadonlyMap<string, ModelledEngine>;
  readonly #toRouter: SeededRandom;
  readonly #adapterNumbers: ReadonlyMap<string, number>;
  readonly #chainRoots = new Map<string | null, bigint>();
  readonly #onArrival: (flight: Flight) => void;
  #inFlight = 0;
  #arrivalsPending = 0;

  constructor(settings: RunSettings, workload: Workload, onArrival: (flight: Flight) => void = () => undefined) {
    this.settings = settings;
    this.workload = workload;
    this.engines = settings.engines.map((setup, index) => new ModelledEngine(index, setup, settings));
    this.routers = Array.from({ length: settings.routers }, (_, index) => new ModelledRouter(index, settings));
    this.samples = new Samples(this.engines.length);
    this.losses = randomFor(settings.seed, "losses");
    this.#engineByName = new Map(this.engines.map((engine) => [engine.name, engine]));
    this.#toRouter = randomFor(settings.seed, "to router");
    this.#adapterNumbers = new Map(settings.adapters.map((name, at) => [name, at + 1]));
    this.#onArrival = onArrival;
  }

  /** No request is on its way, and none will come. */
  get over(): boolean {
    return this.#inFlight === 0 && this.#arrivalsPending === 0;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  engineOf(endpointName: string): ModelledEngine {
    const engine = this.#engineByName.get(endpointName);
    if (engine === undefined) throw new Error(`there is no engine ${endpointName}`);
    return engine;
  }

  /** The next request that comes by itself. */
  nextArrival(): readonly SimEvent<World>[] {
    const arrival = this.workload.next();
    return arrival === null ? NOTHING : [this.#announce(arrival, true)];
  }

  /** A request is here: it gets a number and a router. */
  takeOff(arrival: Arrival): Flight {
    this.#arrivalsPending--;
    this.#inFlight++;
    const router = this.routers[this.routers.length === 1 ? 0 : this.#toRouter.below(this.routers.length)]!;
    const record = recordOf(arrival, this.records.length, this.nowMs);
    this.records.push(record);
    const { chain, tokens } = this.#identified(arrival);
    const request = this.#requestOf(arrival, record.number, chain);
    const flight = new Flight({ arrival, router, request, chain, tokens, record });
    this.#onArrival(flight);
    return flight;
  }

  /** A request has ended, however; returns those that follow from that. */
  end(flight: Flight, ending: Ending, code: string | null): readonly SimEvent<World>[] {
    const { record } = flight;
    if (record.ending !== null) throw new Error(`request ${record.number} ended twice: ${record.ending}, ${ending}`);
    record.ending = ending;
    record.code = code;
    record.endedMs = this.nowMs;
    this.#inFlight--;
    const following = this.workload.ended(flight.arrival, ending === "answered", this.nowMs);
    return following.length === 0 ? NOTHING : following.map((arrival) => this.#announce(arrival, false));
  }

  /** What the routers have decided meanwhile. */
  carryOut(): readonly SimEvent<World>[] {
    if (this.routers.length === 1) return this.routers[0]!.carryOut(this);
    return this.routers.flatMap((router) => router.carryOut(this));
  }

  /** With events, prompts are hashed from token ids as the gateway does; without, the ids can be done without. */
  #identified({ content, promptTokens, outputTokens, answerId, adapter }: Arrival): {
    chain: BigUint64Array;
    tokens: Uint32Array | null;
  } {
    const { blockTokens } = this.engines[0]!.setup.core;
    if (this.settings.events === null) {
      const root = adapter === null ? 0 : this.#adapterNumbers.get(adapter)!;
      const options = { promptTokens, outputTokens, answerId, blockTokens, root };
      return { chain: chainHashes(content, options), tokens: null };
    }
    const tokens = tokensOf(content, { promptTokens, outputTokens, answerId });
    return { chain: tokenChain(this.#rootOf(adapter, blockTokens), tokens, blockTokens), tokens };
  }

  #rootOf(adapter: string | null, blockTokens: number): bigint {
    let root = this.#chainRoots.get(adapter);
    if (root === undefined) this.#chainRoots.set(adapter, (root = chainRoot(adapter, null, blockTokens)));
    return root;
  }

  #announce(arrival: Arrival, byItself: boolean): RequestArrives {
    this.#arrivalsPending++;
    return new RequestArrives(arrival, byItself);
  }

  #requestOf(arrival: Arrival, number: number, chain: BigUint64Array): RouteRequest {
    const { identityTokens } = this.settings;
    const { blockTokens } = this.engines[0]!.setup.core;
    const { promptTokens, outputTokens, adapter, session, tenant, className } = arrival;
    return {
      id: `sim-${String(number).padStart(9, "0")}`,
      model: this.settings.model,
      adapter,
      identity: {
        hashes: identityHashes(chain, arrival.promptTokens, blockTokens, identityTokens),
        blockTokens: identityTokens,
        promptTokens,
        promptBytes: 4 * promptTokens,
        approximate: false,
        unhashable: null,
      },
      maxOutputTokens: this.settings.tellsOutputLimit ? Math.max(1, outputTokens) : null,
      sequences: 1,
      session,
      tenant,
      className,
      arrivedMs: this.nowMs,
      deadlineMs: Number.POSITIVE_INFINITY,
      bodyBytes: 4 * promptTokens,
      generates: outputTokens > 0,
    };
  }
}

/** As hashes are chained, each covers all before it, and every n-th is the chain of blocks that are n times as long. */
function identityHashes(
  chain: BigUint64Array,
  promptTokens: number,
  blockTokens: number,
  identityTokens: number,
): BigUint64Array {
  const blocks = Math.floor(promptTokens / identityTokens);
  const step = identityTokens / blockTokens;
  if (step === 1) return chain.subarray(0, blocks);
  return BigUint64Array.from({ length: blocks }, (_, at) => chain[(at + 1) * step - 1]!);
}

function recordOf(arrival: Arrival, number: number, nowMs: number): RequestRecord {
  return {
    number,
    className: arrival.className,
    tenant: arrival.tenant,
    promptTokens: arrival.promptTokens,
    outputTokens: arrival.outputTokens,
    arrivedMs: nowMs,
    boundMs: Number.NaN,
    reachedMs: Number.NaN,
    scheduledMs: Number.NaN,
    firstTokenMs: Number.NaN,
    endedMs: Number.NaN,
    predictedCachedTokens: 0,
    cachedTokens: 0,
    engine: -1,
    attempts: 0,
    preemptions: 0,
    ending: null,
    code: null,
  };
}
