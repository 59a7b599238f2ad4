import { ScaledRegression } from "../scaledRegression.ts";
import type { SharedLevel } from "../topology.ts";
import type { Channel } from "./channel.ts";
import type { LevelModel } from "./levelModel.ts";

/** From so many own hand-offs on, a link goes by them; until then by those of all links of its level. */
const OWN_AFTER = 8;

/** The way of KV from one replica to another. */
export class Link {
  readonly level: SharedLevel;
  /** Where it leaves, and where it enters: transfers share both. */
  readonly out: Channel;
  readonly into: Channel;
  readonly #ofLevel: LevelModel;
  #own: ScaledRegression | null = null;

  constructor(level: SharedLevel, ends: { out: Channel; into: Channel }, ofLevel: LevelModel) {
    this.level = level;
    this.out = ends.out;
    this.into = ends.into;
    this.#ofLevel = ofLevel;
  }

  /** Hand-offs observed on this very link. */
  get observations(): number {
    return this.#own?.observations ?? 0;
  }

  /** Whether a prediction here rests on hand-offs that were seen. */
  get learned(): boolean {
    return this.#model.observations >= OWN_AFTER;
  }

  /** Hand-off of `bytes` that begins at `startMs`, with what else is on the link then. */
  transferMs(bytes: number, startMs: number, nowMs: number): number {
    const model = this.#model;
    return model.factor(0) * this.#ofLevel.latencyMs + model.factor(1) * this.tableWireMs(bytes, startMs, nowMs);
  }

  /** A hand-off that was predicted to take `wireMs` on the wire took `elapsedMs` in all. */
  observe(wireMs: number, elapsedMs: number): void {
    const level = this.#ofLevel;
    this.#own ??= new ScaledRegression();
    for (const model of [this.#own, level.learned]) {
      model.observe(level.latencyMs, wireMs, 0, elapsedMs);
      level.noteLeast(model);
    }
  }

  get #model(): ScaledRegression {
    return this.#own !== null && this.#own.observations >= OWN_AFTER ? this.#own : this.#ofLevel.learned;
  }

  /** Time on the wire by the table, whatever was learned. */
  tableWireMs(bytes: number, startMs: number, nowMs: number): number {
    const { out, into } = this;
    const before = Math.max(out.othersBytes(bytes, startMs, nowMs), into.othersBytes(bytes, startMs, nowMs));
    return (bytes + before) / out.bytesPerMs;
  }
}
