import type { TestContext } from "node:test";
import { processClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { KvEvent, KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import { KvEventMonitor, type KvMonitorSettings } from "#src/engines/events/kvEventMonitor.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { EmulatedEngine } from "#src/emulator/emulatedEngine.ts";

/** What a router would know of one engine from its events alone. */
export class Follower implements KvEventListener {
  readonly batches: KvEventBatch[] = [];
  /** How long each batch was under way. */
  readonly lateMs: number[] = [];
  /** What the stream itself told: `live`, `lost gap`, `restarted`, `failed`, by rank. */
  readonly told: string[] = [];
  /** By rank and hash: copies that are stored. */
  readonly held = new Map<string, number>();

  batch(_endpoint: unknown, rank: number, batch: KvEventBatch): void {
    this.batches.push(batch);
    this.lateMs.push(Date.now() - batch.publishedMs);
    for (const event of batch.events) this.#apply(rank, event);
  }

  lost(_endpoint: unknown, rank: number, why: string): void {
    this.told.push(`${rank} lost ${why}`);
    this.#forget(rank);
  }

  restarted(_endpoint: unknown, rank: number): void {
    this.told.push(`${rank} restarted`);
    this.#forget(rank);
  }

  progress(): void {}

  live(_endpoint: unknown, rank: number): void {
    this.told.push(`${rank} live`);
  }

  failed(_endpoint: unknown, rank: number): void {
    this.told.push(`${rank} failed`);
  }

  get events(): readonly KvEvent[] {
    return this.batches.flatMap(({ events }) => events);
  }

  #apply(rank: number, event: KvEvent): void {
    if (event.kind === "cleared") this.#forget(rank);
    if (event.kind === "cleared" || event.kind === "moved") return;
    for (const hash of event.engineHashes) {
      const key = `${rank} ${hash}`;
      const copies = (this.held.get(key) ?? 0) + (event.kind === "stored" ? 1 : -1);
      if (copies === 0) this.held.delete(key);
      else this.held.set(key, copies);
    }
  }

  #forget(rank: number): void {
    for (const key of this.held.keys()) if (key.startsWith(`${rank} `)) this.held.delete(key);
  }
}

/** Follows an engine's events as the router does; where they are, the engine says itself. */
export function follow(t: TestContext, engine: EmulatedEngine, settings: Partial<KvMonitorSettings> = {}): Follower {
  const follower = new Follower();
  const endpoint = parseEndpoint(engine.url);
  const monitor = new KvEventMonitor({
    listener: follower,
    clock: processClock,
    timers: processTimers,
    random: new SeededRandom(1),
    settings: { connectFirstDelayMs: 10, connectMaxDelayMs: 40, answerLimitMs: 500, ...settings },
  });
  t.after(() => monitor.stop());
  monitor.setEndpoints([endpoint]);
  monitor.identified(endpoint, profileOf(engine));
  return follower;
}

function profileOf({ options }: EmulatedEngine): EngineProfile {
  return {
    kind: "vllm",
    version: options.version,
    dataParallelRanks: options.dataParallelRanks,
    models: [],
    maxRunningRequests: null,
    kvCapacityTokens: null,
    kvBlockTokens: options.blockTokens,
  };
}
