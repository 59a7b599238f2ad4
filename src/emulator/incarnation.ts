import { processClock } from "#src/determinism/clock.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { EngineLoop } from "./engineLoop.ts";
import type { ResolvedOptions } from "./engineOptions.ts";
import { CacheRecorder } from "./events/cacheRecorder.ts";
import type { EventPublishers } from "./events/eventPublishers.ts";
import { EngineHistograms } from "./metrics/engineHistograms.ts";

/** One data-parallel rank: a scheduler with memory of its own. */
export interface Rank {
  readonly loop: EngineLoop;
  readonly histograms: EngineHistograms;
}

/** An engine process between two restarts: its caches, its counters, its adapters. */
export class Incarnation {
  readonly startedAtSeconds = Date.now() / 1000;
  readonly ranks: readonly Rank[];
  /** Adapters that can be asked for, with where they came from. */
  readonly adapters: Map<string, string>;
  readonly finishedByReason = { stop: 0, length: 0 };
  /** Requests by `method handler status-class`; routes are few, so this stays small. */
  readonly httpRequests = new Map<string, number>();
  rejected = 0;
  /** Set when the process is gone: what was open then did not fail by its client. */
  stopped = false;

  constructor(options: ResolvedOptions, publishers: EventPublishers | null) {
    this.adapters = new Map(options.adapters.map((name) => [name, `adapters/${name}`]));
    this.ranks = Array.from({ length: options.dataParallelRanks }, (_, rank) => startRank(options, rank, publishers));
  }

  /** The rank with the least to do, as vLLM's own balancer chooses. */
  leastLoadedRank(): Rank {
    const load = ({ loop }: Rank): number => loop.core.running.length + 4 * loop.core.waitingCount;
    return this.ranks.reduce((best, rank) => (load(rank) < load(best) ? rank : best));
  }

  get running(): number {
    return this.ranks.reduce((sum, { loop }) => sum + loop.core.running.length, 0);
  }

  get waiting(): number {
    return this.ranks.reduce((sum, { loop }) => sum + loop.core.waitingCount, 0);
  }

  /** Whether the next sequence finds a batch slot, once those before it have theirs. */
  get hasFreeSlot(): boolean {
    const slots = this.ranks.reduce((sum, { loop }) => sum + loop.core.options.maxRunning, 0);
    return this.running + this.waiting < slots;
  }

  setSlowFactor(factor: number): void {
    for (const { loop } of this.ranks) loop.core.slowFactor = factor;
  }

  clearCache(): boolean {
    return this.ranks.every(({ loop }) => loop.core.clearCache());
  }

  stop(): void {
    this.stopped = true;
    for (const { loop } of this.ranks) loop.stop();
  }
}

function startRank(options: ResolvedOptions, rank: number, publishers: EventPublishers | null): Rank {
  const recorder = publishers === null ? null : new CacheRecorder(options.blockTokens);
  const histograms = new EngineHistograms(options.timeScale);
  const loop = new EngineLoop(
    {
      times: options.times,
      kvBlocks: options.kvTokens / options.blockTokens,
      blockTokens: options.blockTokens,
      hostBlocks: Math.floor(options.hostKvTokens / options.blockTokens),
      restoreMsPerBlock: options.restoreMsPerBlock,
      maxRunning: options.maxRunning,
      maxBatchedTokens: options.maxBatchedTokens,
      policy: options.policy,
      prefixCaching: options.prefixCaching,
      maxResidentAdapters: options.maxResidentAdapters,
      adapterLoadMs: options.adapterLoadMs,
      ...(recorder === null ? {} : { cacheListener: recorder }),
    },
    {
      timeScale: options.timeScale,
      clock: processClock,
      timers: processTimers,
      onBegin: () => recorder?.seal(),
      onStep: (outcome) => {
        histograms.observe(outcome);
        if (recorder !== null) publishers?.publish(rank, recorder.take());
      },
    },
  );
  return { loop, histograms };
}
