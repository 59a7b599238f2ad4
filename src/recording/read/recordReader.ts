import { HANDOFF_NAMES, type HandoffName } from "#src/discovery/replicaSpec.ts";
import type { KvEvent, KvTier } from "#src/engines/events/kvEvent.ts";
import { RouterError, type ErrorCode } from "#src/errors/routerError.ts";
import type { UnhashableReason } from "#src/request/identity.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { AttemptOutcome, Usage } from "#src/scheduler/outcome.ts";
import { ByteReader } from "../format/byteReader.ts";
import type { HashKey } from "../format/hashKey.ts";
import {
  CODE,
  NESTED,
  type RecordedDecision,
  type RecordedScrape,
  type RecordingRecord,
  type SectionRecord,
  type RecordKind,
  type Result,
} from "../format/records.ts";
import { RecordingError } from "../format/recordingError.ts";
import { ChainReader } from "./chainReader.ts";
import * as shape from "./shapes.ts";

interface OfEngine {
  readonly nowMs: number;
  readonly engine: string;
}

const KINDS = new Map<number, RecordKind>(Object.entries(CODE).map(([kind, code]) => [code, kind as RecordKind]));
const TIERS: readonly string[] = ["gpu", "host", "disk", "remote"] satisfies KvTier[];

/** Reads the records of one file's frames, in order. Throws RecordingError for what the recorder never writes. */
export class RecordReader {
  readonly #from = new ByteReader();
  readonly #chains: ChainReader;
  readonly #scrapes = new Map<string, RecordedScrape>();

  constructor(key: HashKey | null) {
    this.#chains = new ChainReader(key);
  }

  *records(payload: Buffer): Generator<RecordingRecord> {
    this.#from.load(payload);
    while (!this.#from.done) yield this.#record();
  }

  #record(): RecordingRecord {
    const from = this.#from;
    const code = from.byte();
    const kind = KINDS.get(code & ~NESTED);
    if (kind === undefined) throw new RecordingError(`there is no kind of record ${code & ~NESTED}`);
    return this.#read[kind](code >= NESTED ? from.whole() : 0);
  }

  #section(): SectionRecord {
    this.#from.reset();
    this.#chains.reset();
    this.#scrapes.clear();
    const section = shape.section(this.#from.json());
    for (const { name, scrape } of section.engines) if (scrape !== null) this.#scrapes.set(name, scrape);
    return { kind: "section", section };
  }

  /** In the order of the bytes: properties are evaluated as they are written. */
  readonly #read: { readonly [Kind in RecordKind]: (depth: number) => Extract<RecordingRecord, { kind: Kind }> } = {
    section: () => this.#section(),
    settled: () => ({ kind: "settled", ticket: this.#from.whole(), result: this.#result() }),
    lost: () => ({ kind: "lost", place: this.#from.whole() }),
    shutdown: (depth) => ({ kind: "shutdown", depth }),
    configure: (depth) => ({ kind: "configure", depth, settings: this.#from.json() }),
    submit: (depth) => this.#submit(depth),
    cancel: (depth) => ({ kind: "cancel", depth, nowMs: this.#from.time(), ticket: this.#from.whole() }),
    prefilled: (depth) => ({ kind: "prefilled", depth, ...this.#ofPlace(), usage: this.#usageOrNull() }),
    heldUp: (depth) => ({ kind: "heldUp", depth, place: this.#from.whole() }),
    firstToken: (depth) => ({ kind: "firstToken", depth, ...this.#ofPlace() }),
    progress: (depth) => ({ kind: "progress", depth, ...this.#ofPlace(), outputTokens: this.#real() }),
    finish: (depth) => ({ kind: "finish", depth, ...this.#ofPlace(), outcome: this.#outcome() }),
    wake: (depth) => ({ kind: "wake", depth, nowMs: this.#from.time() }),
    fleetTick: (depth) => ({ kind: "fleetTick", depth, nowMs: this.#from.time() }),
    endpoints: (depth) => ({ kind: "endpoints", depth, ...this.#ofSource(), endpoints: this.#shaped(shape.endpoints) }),
    profile: (depth) => ({ kind: "profile", depth, ...this.#ofEngine(), profile: this.#shaped(shape.profile) }),
    models: (depth) => ({ kind: "models", depth, ...this.#ofEngine(), models: this.#shaped(shape.models) }),
    health: (depth) => ({ kind: "health", depth, ...this.#ofEngine(), health: this.#shaped(shape.health) }),
    scrape: (depth) => this.#scrape(depth, this.#ofEngine()),
    endpointRestarted: (depth) => this.#restarted(depth, this.#ofEngine()),
    drain: (depth) => ({ kind: "drain", depth, nowMs: this.#from.time(), replicaId: this.#from.text() }),
    resume: (depth) => ({ kind: "resume", depth, nowMs: this.#from.time(), replicaId: this.#from.text() }),
    kvBatch: (depth) => this.#kvBatch(depth),
    kvLost: (depth) => ({ kind: "kvLost", depth, ...this.#ofRank(), why: this.#shaped(shape.kvLoss) }),
    kvRestarted: (depth) => ({ kind: "kvRestarted", depth, ...this.#ofRank() }),
    kvLive: (depth) => ({ kind: "kvLive", depth, ...this.#ofRank(), complete: this.#from.flag() }),
    kvFailed: (depth) => ({ kind: "kvFailed", depth, ...this.#ofRank(), why: this.#from.text() }),
  };

  #submit(depth: number): Extract<RecordingRecord, { kind: "submit" }> {
    const from = this.#from;
    const nowMs = from.time();
    const ticket = from.whole();
    const model = from.text();
    const adapter = from.textOrNull();
    const identity = {
      hashes: this.#chains.read(from),
      blockTokens: this.#real(),
      promptTokens: this.#real(),
      promptBytes: this.#real(),
      approximate: from.flag(),
      unhashable: from.textOrNull() as UnhashableReason | null,
    };
    const request: RouteRequest = {
      id: `recorded-${ticket}`,
      model,
      adapter,
      identity,
      maxOutputTokens: from.number(),
      sequences: from.whole(),
      session: this.#session(),
      tenant: from.text(),
      className: from.text(),
      arrivedMs: from.time(),
      deadlineMs: from.time(),
      bodyBytes: from.whole(),
      generates: from.flag(),
      ...this.#split(),
    };
    const attempt = from.whole();
    const sinceMs = from.time();
    const excluded = Array.from({ length: from.count(1) }, () => from.text());
    return { kind: "submit", depth, nowMs, ticket, request, attempt, sinceMs, excluded, streamed: from.flag() };
  }

  #split(): Pick<RouteRequest, "handoffs" | "unsplit"> {
    const from = this.#from;
    const handoffs = Array.from({ length: from.count(1) }, () => handoffOf(from.text()));
    const unsplit = from.textOrNull();
    return { ...(handoffs.length === 0 ? {} : { handoffs }), ...(unsplit === null ? {} : { unsplit }) };
  }

  #usage(): Usage {
    const from = this.#from;
    return { promptTokens: from.number(), cachedTokens: from.number(), outputTokens: from.number() };
  }

  #usageOrNull(): Usage | null {
    return this.#from.flag() ? this.#usage() : null;
  }

  #session(): string | null {
    if (!this.#from.flag()) return null;
    // With the key it is the number that the session's name writes; without, it tells sessions apart.
    const number = this.#chains.single(this.#from);
    return number.toString(16).padStart(8, "0");
  }

  #result(): Result {
    const from = this.#from;
    if (from.flag()) return { placed: from.whole(), decision: this.#decision() };
    return { placed: null, refused: { code: from.text(), retryAfterMs: from.number() } };
  }

  #decision(): RecordedDecision {
    const from = this.#from;
    const policy = from.text();
    const branch = from.text();
    const chosen = from.whole();
    const priced = from.flag();
    const rows = Array.from({ length: from.count(6) }, () => ({
      replicaId: from.text(),
      cachedTokens: this.#real(),
      figure: from.float32(),
    }));
    if (chosen >= rows.length) throw new RecordingError("a decision names a candidate that there is not");
    return { policy, branch, chosen, priced, rows, digest: [from.word(), from.word()] };
  }

  #outcome(): AttemptOutcome {
    const from = this.#from;
    const kind = from.text();
    const leg = legOf(from.textOrNull());
    switch (kind) {
      case "answered":
        return { kind, ...leg, status: from.whole(), usage: this.#usage() };
      case "busy":
        return { kind, ...leg, status: from.whole(), retryAfterMs: from.number() };
      case "failed": {
        const code = from.text() as ErrorCode;
        const error = new RouterError(code, "as recorded", { fault: "engine", httpStatus: 502, retryable: true });
        return { kind, ...leg, error, started: from.flag() };
      }
      case "client_gone":
      case "shutdown":
        return { kind, ...leg };
      default:
        throw new RecordingError(`"${kind}" is no way to end`);
    }
  }

  /** Facts that are left out are as they were. */
  #scrape(depth: number, of: OfEngine): Extract<RecordingRecord, { kind: "scrape" }> {
    const { byRank, missing } = this.#shaped(shape.scrape);
    const before = this.#scrapes.get(of.engine)?.byRank ?? [];
    const scrape: RecordedScrape = {
      missing,
      byRank: byRank.map(([rank, news]) => {
        const old = before.find(([known]) => known === rank)?.[1] ?? shape.NO_METRICS;
        return [rank, { ...old, ...news }];
      }),
    };
    this.#scrapes.set(of.engine, scrape);
    return { kind: "scrape", depth, ...of, scrape };
  }

  #restarted(depth: number, of: OfEngine): Extract<RecordingRecord, { kind: "endpointRestarted" }> {
    this.#scrapes.delete(of.engine);
    return { kind: "endpointRestarted", depth, ...of };
  }

  #kvBatch(depth: number): Extract<RecordingRecord, { kind: "kvBatch" }> {
    const from = this.#from;
    const of = this.#ofRank();
    const rank = from.whole();
    const seq = from.whole();
    const publishedMs = this.#real();
    const unreadableEvents = from.whole();
    const events = Array.from({ length: from.count(1) }, () => this.#kvEvent());
    return { kind: "kvBatch", depth, ...of, batch: { rank, seq, publishedMs, unreadableEvents, events } };
  }

  #kvEvent(): KvEvent {
    const from = this.#from;
    const kind = from.text();
    if (kind === "cleared") return { kind };
    const engineHashes = this.#chains.literals(from);
    const group = from.whole();
    switch (kind) {
      case "removed": {
        const tier = from.textOrNull();
        return { kind, engineHashes, group, tier: tier === null ? null : tierOf(tier) };
      }
      case "moved":
        return { kind, engineHashes, group, from: tierOf(from.text()), to: tierOf(from.text()) };
      case "stored": {
        const tier = tierOf(from.text());
        const parent = this.#chains.literals(from)[0] ?? null;
        const blockTokens = from.whole();
        const fullAttention = from.flag();
        const own = { hashes: this.#chains.literals(from) };
        const tokenIds = new Uint32Array(0);
        const event = { kind, engineHashes, group, tier, parent, blockTokens, fullAttention, own, tokenIds } as const;
        return { ...event, loraName: null, salt: null, blockKeys: null };
      }
      default:
        throw new RecordingError(`"${kind}" is no KV event`);
    }
  }

  #ofPlace(): { nowMs: number; place: number } {
    return { nowMs: this.#from.time(), place: this.#from.whole() };
  }

  #ofSource(): { nowMs: number; source: string } {
    return { nowMs: this.#from.time(), source: this.#from.text() };
  }

  #ofEngine(): OfEngine {
    return { nowMs: this.#from.time(), engine: this.#from.text() };
  }

  #ofRank(): OfEngine & { rank: number } {
    return { ...this.#ofEngine(), rank: this.#from.whole() };
  }

  #shaped<Shape>(read: (json: unknown) => Shape): Shape {
    return read(this.#from.json());
  }

  /** A number that there must be. */
  #real(): number {
    const value = this.#from.number();
    if (value === null) throw new RecordingError("a number is missing");
    return value;
  }
}

function handoffOf(text: string): HandoffName {
  const name = HANDOFF_NAMES.find((known) => known === text);
  if (name === undefined) throw new RecordingError(`"${text}" is no way to hand over`);
  return name;
}

function legOf(text: string | null): Pick<AttemptOutcome, "leg"> {
  if (text === null) return {};
  if (text !== "prefill" && text !== "decode" && text !== "link") throw new RecordingError(`"${text}" is no leg`);
  return { leg: text };
}

function tierOf(text: string): KvTier {
  if (!TIERS.includes(text)) throw new RecordingError(`"${text}" is no tier`);
  return text as KvTier;
}
