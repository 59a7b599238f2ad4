import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { KvEvent, KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { KvLoss } from "#src/engines/events/kvEventListener.ts";
import type { EngineHealth } from "#src/engines/monitorListener.ts";
import type { ScrapeResult, ServedModel } from "#src/engines/vocabulary.ts";
import { RouterError } from "#src/errors/routerError.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { Decision } from "#src/routing/decision.ts";
import { sessionNumber } from "#src/routing/sessionName.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import type { SubmitOptions } from "#src/scheduler/ticket.ts";
import { ByteWriter } from "../format/byteWriter.ts";
import { DecisionDigest } from "../format/decisionDigest.ts";
import { headerBytes, type FileHeader } from "../format/frames.ts";
import type { HashKey } from "../format/hashKey.ts";
import { CODE, NESTED, type RecordedScrape, type RecordKind, type Section } from "../format/records.ts";
import { ChainWriter } from "./chainWriter.ts";
import { KnownFleet } from "./knownFleet.ts";
import type { RecordSink } from "./recordSink.ts";

export interface RecorderOptions {
  readonly sink: RecordSink;
  readonly key: HashKey;
  readonly header: Omit<FileHeader, "part" | "keyId">;
  /** Of the configuration what decisions depend on. */
  readonly settings: unknown;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
}

/** Names of tenants whose pseudonym is kept: more than there are keys. */
const MAX_TENANTS = 20_000;

/**
 * Writes down what goes into the scheduler and the fleet, and what comes out. A call that is made from within another
 * one is that one's own doing and not written down, unless it is made by somebody who is told of something on the way:
 * such calls are nested, and have a depth.
 */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #sink: RecordSink;
  readonly #to = new ByteWriter();
  readonly #chains: ChainWriter;
  readonly #digest = new DecisionDigest();
  readonly #known = new KnownFleet();
  readonly #tenants = new Map<string, string>();
  readonly #session = new Uint32Array(2);
  #settings: unknown;
  #inside = false;
  #depth = 0;
  #tickets = 0;
  #places = 0;
  #part = 0;
  /** Records given up since the last section; more than none: the next one must begin a section. */
  #dropped = 0;
  #droppedTotal = 0;
  #lostSeen = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#sink = options.sink;
    this.#chains = new ChainWriter(options.key);
    this.#settings = options.settings;
  }

  /** Records that were given up: the disk was too slow, or failed. */
  get dropped(): number {
    return this.#droppedTotal + this.#sink.lostRecords;
  }

  /** Begins a call; false: it is part of another one. */
  enter(): boolean {
    if (this.#inside) return false;
    this.#inside = true;
    return true;
  }

  leave(): void {
    this.#inside = false;
  }

  /** Somebody is told: what he calls in turn is written down. To be given back to `told`. */
  tell(): boolean {
    const before = this.#inside;
    this.#inside = false;
    this.#depth++;
    return before;
  }

  told(before: boolean): void {
    this.#inside = before;
    this.#depth--;
  }

  /** Returns the ticket's number. */
  submit(request: RouteRequest, nowMs: number, options: SubmitOptions): number {
    const ticket = this.#tickets++;
    if (!this.#begin("submit")) return ticket;
    const to = this.#to;
    const { identity } = request;
    to.time(nowMs);
    to.whole(ticket);
    to.text(request.model);
    to.textOrNull(request.adapter);
    this.#chains.write(identity.hashes, to);
    to.number(identity.blockTokens);
    to.number(identity.promptTokens);
    to.number(identity.promptBytes);
    to.flag(identity.approximate);
    to.textOrNull(identity.unhashable);
    to.number(request.maxOutputTokens);
    to.whole(request.sequences);
    this.#writeSession(request.session);
    to.text(this.#tenant(request.tenant));
    to.text(request.className);
    to.time(request.arrivedMs);
    to.time(request.deadlineMs);
    to.whole(request.bodyBytes);
    to.flag(request.generates);
    to.whole(request.handoffs?.length ?? 0);
    for (const name of request.handoffs ?? []) to.text(name);
    to.textOrNull(request.unsplit ?? null);
    to.whole(options.attempt ?? 1);
    to.time(options.sinceMs ?? nowMs);
    to.whole(options.excluded?.size ?? 0);
    for (const id of options.excluded ?? []) to.text(id);
    to.flag(options.streamed ?? true);
    this.#commit();
    return ticket;
  }

  settled(ticket: number, result: Placement | RouterError): void {
    const place = result instanceof RouterError ? -1 : (result.recordedAs = this.#places++);
    if (!this.#begin("settled")) return;
    const to = this.#to;
    to.whole(ticket);
    to.flag(place >= 0);
    if (result instanceof RouterError) {
      to.text(result.code);
      to.number(result.retryAfterMs);
    } else {
      to.whole(place);
      this.#decision(result.decision);
    }
    this.#commit();
  }

  lost({ recordedAs }: Placement): void {
    if (!this.#begin("lost")) return;
    this.#to.whole(recordedAs);
    this.#commit();
  }

  cancel(ticket: number, nowMs: number): void {
    if (!this.#begin("cancel")) return;
    this.#to.time(nowMs);
    this.#to.whole(ticket);
    this.#commit();
  }

  prefilled({ recordedAs }: Placement, usage: Usage | null, nowMs: number): void {
    if (!this.#begin("prefilled")) return;
    this.#to.time(nowMs);
    this.#to.whole(recordedAs);
    this.#to.flag(usage !== null);
    if (usage !== null) this.#usage(usage);
    this.#commit();
  }

  firstToken({ recordedAs }: Placement, nowMs: number): void {
    if (!this.#begin("firstToken")) return;
    this.#to.time(nowMs);
    this.#to.whole(recordedAs);
    this.#commit();
  }

  heldUp({ recordedAs }: Placement): void {
    if (!this.#begin("heldUp")) return;
    this.#to.whole(recordedAs);
    this.#commit();
  }

  progress({ recordedAs }: Placement, outputTokens: number, nowMs: number): void {
    if (!this.#begin("progress")) return;
    this.#to.time(nowMs);
    this.#to.whole(recordedAs);
    this.#to.number(outputTokens);
    this.#commit();
  }

  finish({ recordedAs }: Placement, outcome: AttemptOutcome, nowMs: number): void {
    if (!this.#begin("finish")) return;
    const to = this.#to;
    to.time(nowMs);
    to.whole(recordedAs);
    to.text(outcome.kind);
    to.textOrNull(outcome.leg ?? null);
    if (outcome.kind === "answered") {
      to.whole(outcome.status);
      this.#usage(outcome.usage);
    } else if (outcome.kind === "busy") {
      to.whole(outcome.status);
      to.number(outcome.retryAfterMs);
    } else if (outcome.kind === "failed") {
      to.text(outcome.error.code);
      to.flag(outcome.started);
    }
    this.#commit();
  }

  timed(kind: "wake" | "fleetTick", nowMs: number): void {
    if (!this.#begin(kind)) return;
    this.#to.time(nowMs);
    this.#commit();
  }

  shutdown(): void {
    if (this.#begin("shutdown")) this.#commit();
  }

  configure(settings: unknown): void {
    this.#settings = settings;
    if (!this.#begin("configure")) return;
    this.#to.json(settings);
    this.#commit();
  }

  endpoints(source: string, given: readonly EngineEndpoint[], nowMs: number): void {
    // What an engine is asked with is nobody's business.
    const endpoints = given.map((endpoint) => ({ ...endpoint, apiKey: null }));
    this.#known.setEndpoints(source, endpoints);
    if (!this.#begin("endpoints")) return;
    this.#to.time(nowMs);
    this.#to.text(source);
    this.#to.json(endpoints);
    this.#commit();
  }

  profile(engine: string, profile: EngineProfile, nowMs: number): void {
    const known = this.#known.engine(engine);
    if (known !== undefined) known.profile = profile;
    this.#ofEngine("profile", engine, profile, nowMs);
  }

  models(engine: string, models: readonly ServedModel[], nowMs: number): void {
    const known = this.#known.engine(engine);
    if (known !== undefined && known.profile !== null) known.profile = { ...known.profile, models };
    this.#ofEngine("models", engine, models, nowMs);
  }

  health(engine: string, health: EngineHealth, nowMs: number): void {
    const known = this.#known.engine(engine);
    if (known !== undefined) known.health = health;
    this.#ofEngine("health", engine, health, nowMs);
  }

  scrape(engine: string, { byRank, missing }: ScrapeResult, nowMs: number): void {
    const scrape: RecordedScrape = { byRank: [...byRank], missing };
    const known = this.#known.engine(engine);
    const before = known?.scrape ?? null;
    if (known !== undefined) known.scrape = scrape;
    this.#ofEngine("scrape", engine, changed(before, scrape), nowMs);
  }

  endpointRestarted(engine: string, nowMs: number): void {
    this.#known.restarted(engine);
    if (!this.#begin("endpointRestarted")) return;
    this.#to.time(nowMs);
    this.#to.text(engine);
    this.#commit();
  }

  ofReplica(kind: "drain" | "resume", replicaId: string, nowMs: number): void {
    if (!this.#begin(kind)) return;
    this.#to.time(nowMs);
    this.#to.text(replicaId);
    this.#commit();
  }

  kvBatch(engine: string, rank: number, batch: KvEventBatch, nowMs: number): void {
    if (!this.#beginOfRank("kvBatch", engine, rank, nowMs)) return;
    const to = this.#to;
    to.whole(batch.rank);
    to.whole(batch.seq);
    to.number(batch.publishedMs);
    to.whole(batch.unreadableEvents);
    to.whole(batch.events.length);
    for (const event of batch.events) this.#kvEvent(event);
    this.#commit();
  }

  kvLost(engine: string, rank: number, why: KvLoss, nowMs: number): void {
    if (!this.#beginOfRank("kvLost", engine, rank, nowMs)) return;
    this.#to.json(why);
    this.#commit();
  }

  kvRestarted(engine: string, rank: number, nowMs: number): void {
    if (this.#beginOfRank("kvRestarted", engine, rank, nowMs)) this.#commit();
  }

  kvLive(engine: string, rank: number, complete: boolean, nowMs: number): void {
    if (!this.#beginOfRank("kvLive", engine, rank, nowMs)) return;
    this.#to.flag(complete);
    this.#commit();
  }

  kvFailed(engine: string, rank: number, why: string, nowMs: number): void {
    if (!this.#beginOfRank("kvFailed", engine, rank, nowMs)) return;
    this.#to.text(why);
    this.#commit();
  }

  #kvEvent(event: KvEvent): void {
    const to = this.#to;
    to.text(event.kind);
    if (event.kind === "cleared") return;
    this.#chains.literals(event.engineHashes, to);
    to.whole(event.group);
    if (event.kind === "removed") to.textOrNull(event.tier);
    else if (event.kind === "moved") {
      to.text(event.from);
      to.text(event.to);
    } else {
      to.text(event.tier);
      this.#chains.literals(event.parent === null ? new BigUint64Array(0) : BigUint64Array.of(event.parent), to);
      to.whole(event.blockTokens);
      to.flag(event.fullAttention);
      this.#chains.literals(event.own?.hashes ?? new BigUint64Array(0), to);
    }
  }

  #decision(decision: Decision): void {
    const to = this.#to;
    to.text(decision.policy);
    to.text(decision.branch);
    to.whole(decision.chosen);
    to.flag(decision.priced);
    to.whole(decision.rows);
    for (let row = 0; row < decision.rows; row++) {
      to.text(decision.replicaIds[row]!);
      to.number(decision.cachedTokens(row));
      to.float32(decision.priced ? decision.totalMs(row) : decision.score(row));
    }
    const [low, high] = this.#digest.of(decision);
    to.word(low);
    to.word(high);
  }

  #usage({ promptTokens, cachedTokens, outputTokens }: Usage): void {
    this.#to.number(promptTokens);
    this.#to.number(cachedTokens);
    this.#to.number(outputTokens);
  }

  /** Enciphered like other hashes. */
  #writeSession(session: string | null): void {
    this.#to.flag(session !== null);
    if (session === null) return;
    this.#session[0] = sessionNumber(session);
    this.#session[1] = 0;
    this.#options.key.encipher(this.#session, 0, this.#session, 0, 1);
    this.#to.words(this.#session, 2);
  }

  #tenant(name: string): string {
    let pseudonym = this.#tenants.get(name);
    if (pseudonym === undefined) {
      if (this.#tenants.size >= MAX_TENANTS) this.#tenants.clear();
      pseudonym = this.#options.key.tenant(name);
      this.#tenants.set(name, pseudonym);
    }
    return pseudonym;
  }

  #ofEngine(kind: RecordKind, engine: string, what: unknown, nowMs: number): void {
    if (!this.#begin(kind)) return;
    this.#to.time(nowMs);
    this.#to.text(engine);
    this.#to.json(what);
    this.#commit();
  }

  #beginOfRank(kind: RecordKind, engine: string, rank: number, nowMs: number): boolean {
    if (!this.#begin(kind)) return false;
    this.#to.time(nowMs);
    this.#to.text(engine);
    this.#to.whole(rank);
    return true;
  }

  /** False: the record must be given up. */
  #begin(kind: RecordKind): boolean {
    if (this.#dropped > 0 || this.#sink.needsFile) {
      // Within a call or what it led to, a section would come between what belongs together.
      const isWhole = this.#depth === 0 && kind !== "settled" && kind !== "lost";
      if (isWhole) this.#section();
      else if (this.#sink.lostRecords > this.#lostSeen) this.#dropped = Math.max(1, this.#dropped);
    }
    if (this.#dropped > 0) {
      this.#drop();
      return false;
    }
    this.#code(kind);
    return true;
  }

  #code(kind: RecordKind): void {
    this.#to.start();
    if (this.#depth === 0) this.#to.byte(CODE[kind]);
    else {
      this.#to.byte(CODE[kind] | NESTED);
      this.#to.whole(this.#depth);
    }
  }

  #commit(): void {
    if (!this.#sink.append(this.#to.bytes)) this.#drop();
  }

  #drop(): void {
    this.#dropped++;
    this.#droppedTotal++;
  }

  /** Begins anew, in a new file if one is due, with all that a reader must know. Leaves `#dropped` at 0 if it can. */
  #section(): void {
    if (!this.#sink.hasRoom) {
      this.#dropped = Math.max(1, this.#dropped);
      return;
    }
    const { header, key, wallMs, nowMs } = this.#options;
    const lost = this.#sink.lostRecords - this.#lostSeen;
    if (this.#sink.needsFile) this.#sink.beginFile(headerBytes({ ...header, part: this.#part++, keyId: key.id }));
    this.#to.reset();
    this.#chains.reset();
    const section: Section = {
      wallMs: wallMs(),
      clockMs: nowMs(),
      dropped: this.#dropped + lost,
      settings: this.#settings,
      endpoints: this.#known.endpoints,
      engines: this.#known.engines,
    };
    this.#to.start();
    this.#to.byte(CODE.section);
    this.#to.json(section);
    if (!this.#sink.append(this.#to.bytes)) {
      this.#drop();
      return;
    }
    this.#lostSeen += lost;
    this.#dropped = 0;
  }
}

/** Of the ranks' metrics only what is not as it was; a reader adds the rest. */
function changed(before: RecordedScrape | null, scrape: RecordedScrape): unknown {
  return {
    ...scrape,
    byRank: scrape.byRank.map(([rank, metrics]) => {
      const old = before?.byRank.find(([known]) => known === rank)?.[1];
      if (old === undefined) return [rank, metrics];
      const news = Object.entries(metrics).filter(
        ([fact, value]) => JSON.stringify(value) !== JSON.stringify(old[fact as keyof typeof old]),
      );
      return [rank, Object.fromEntries(news)];
    }),
  };
}
