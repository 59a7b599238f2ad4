import type { Run } from "../run.ts";
import { quantile, variation } from "./distribution.ts";
import { tpotMs, ttftMs } from "./summary.ts";

/** What is drawn of one run. */
export interface Curves {
  /** Value at 0%, 1%, … 100% of the requests; Infinity: missed. */
  readonly ttftMs: readonly number[];
  readonly tpotMs: readonly number[];
  readonly timeline: readonly Moment[];
}

export interface Moment {
  readonly atMs: number;
  /** Requests that wait in the routers, and those at the engines, together. */
  readonly waiting: number;
  readonly atEngines: number;
  /** Mean over engines. */
  readonly kvUsage: number;
  /** Coefficient of variation of requests over engines. */
  readonly variation: number;
}

const MOMENTS = 240;

export function curvesOf({ world }: Run): Curves {
  const { records, samples } = world;
  const { engines, atMs } = samples;
  const every = Math.max(1, Math.ceil(atMs.length / MOMENTS));
  const timeline: Moment[] = [];
  for (let at = 0; at < atMs.length; at += every) {
    const requests = samples.requests.slice(at * engines, (at + 1) * engines);
    const usage = samples.kvUsage.slice(at * engines, (at + 1) * engines);
    timeline.push({
      atMs: atMs[at]!,
      waiting: samples.waiting[at]!,
      atEngines: requests.reduce((sum, count) => sum + count, 0),
      kvUsage: usage.reduce((sum, share) => sum + share, 0) / engines,
      variation: variation(requests),
    });
  }
  return {
    ttftMs: percentiles(records.map(ttftMs)),
    tpotMs: percentiles(records.map(tpotMs).filter((value) => !Number.isNaN(value))),
    timeline,
  };
}

function percentiles(values: readonly number[]): readonly number[] {
  const sorted = Float64Array.from(values).sort();
  return Array.from({ length: 101 }, (_, percent) => quantile(sorted, percent / 100));
}
