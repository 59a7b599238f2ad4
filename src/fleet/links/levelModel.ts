import { ScaledRegression } from "../scaledRegression.ts";

/** What all links of one level have in common. */
export class LevelModel {
  readonly latencyMs: number;
  readonly bytesPerMs: number;
  /** Hand-offs over all links of the level: factors on latency (0) and on the time on the wire (1). */
  readonly learned = new ScaledRegression();
  /** The lowest factors that any of its links ever had. */
  #leastLatency = 1;
  #leastWire = 1;

  constructor(latencyMs: number, rateBytesPerMs: number) {
    this.latencyMs = latencyMs;
    this.bytesPerMs = rateBytesPerMs;
  }

  /** To be called with whatever model of a link of this level has changed. */
  noteLeast(model: ScaledRegression): void {
    this.#leastLatency = Math.min(this.#leastLatency, model.factor(0));
    this.#leastWire = Math.min(this.#leastWire, model.factor(1));
  }

  /** No link of the level hands `bytes` over more quickly, whatever else is on it. */
  leastMs(bytes: number): number {
    return this.#leastLatency * this.latencyMs + (this.#leastWire * bytes) / this.bytesPerMs;
  }
}
