import type { Speculation } from "#src/emulator/scheduler/speculation.ts";
import type { EngineCoreOptions } from "#src/emulator/scheduler/engineCore.ts";
import type { ServiceClass } from "#src/scheduler/classes.ts";
import type { QueueLimits } from "#src/scheduler/queueLimits.ts";

/** One modelled engine. */
export interface EngineSetup {
  readonly name: string;
  /** What the router is told of its speed: key of the priors, or null. */
  readonly prior: string | null;
  readonly core: Omit<EngineCoreOptions, "speculation" | "cacheListener">;
  /** Every step takes this many times as long; the router is not told. */
  readonly slowFactor: number;
  readonly speculation: Omit<Speculation, "random"> | null;
}

/** What decides. */
export interface RouterSetup {
  /** Name in reports. */
  readonly label: string;
  readonly policy: string;
  readonly options: Readonly<Record<string, number>>;
  /**
   * `scheduler`: requests wait in the router as Kvasir's scheduler has it. `immediate`: each goes to an engine at once
   * and waits there, as with routers that have no queue.
   */
  readonly binding: "scheduler" | "immediate";
}

/** How routers watch engines. */
export interface MonitorSetup {
  readonly scrapeEveryMs: number;
  /** From the moment that the metrics describe until the router knows them. */
  readonly scrapeDelayMs: number;
  readonly scrapeLossShare: number;
  readonly healthEveryMs: number;
}

/** How engines' KV events get to routers. */
export interface EventSetup {
  readonly delayMs: number;
  /** Batches that do not come, and are asked for again: they and all that follow them come so much later. */
  readonly lossShare: number;
  readonly replayMs: number;
}

/** Something that befalls an engine. */
export type Incident =
  /** The process dies; another is started, listens after `downMs` and has loaded its model `loadMs` later. */
  | {
      readonly kind: "crash";
      readonly atMs: number;
      readonly engine: number;
      readonly downMs: number;
      readonly loadMs: number;
    }
  | { readonly kind: "slow"; readonly atMs: number; readonly engine: number; readonly factor: number };

/** One run: one policy, one workload, one seed. */
export interface RunSettings {
  readonly model: string;
  readonly engines: readonly EngineSetup[];
  readonly router: RouterSetup;
  /** Routers that share the engines and know nothing of each other. */
  readonly routers: number;
  readonly monitor: MonitorSetup;
  /** One way, router to engine. */
  readonly networkMs: number;
  readonly maxRetries: number;
  readonly queue: QueueLimits;
  readonly classes: readonly ServiceClass[];
  readonly adapters: readonly string[];
  /** Null: engines publish none, and routers infer what is cached from their own traffic. */
  readonly events: EventSetup | null;
  /** Tokens that one hash of a request's identity covers: a multiple of the engines' block; with events, their block. */
  readonly identityTokens: number;
  /** Whether requests state their answer's length as its limit. */
  readonly tellsOutputLimit: boolean;
  readonly incidents: readonly Incident[];
  readonly sampleEveryMs: number;
  readonly seed: number;
}
