import { hardwareFor } from "#src/emulator/kvCapacity.ts";
import type { EngineSetup } from "./world/runSettings.ts";

/** A flag whose value cannot be used: says which part, and what is allowed. */
export class SpecError extends Error {
  override readonly name = "SpecError";
}

/** So many replicas of one kind of GPU. */
export interface GpuGroup {
  readonly gpu: string;
  readonly count: number;
}

/** `h200` means `replicas` of them; `h200:4,h100:4` says how many of each. */
export function parseGpus(text: string, replicas: number): readonly GpuGroup[] {
  const parts = text.split(",");
  if (parts.length === 1 && !text.includes(":")) return [{ gpu: text, count: replicas }];
  return parts.map((part) => {
    const [gpu = "", count = ""] = part.split(":");
    if (gpu === "" || !/^[1-9]\d{0,3}$/u.test(count))
      throw new SpecError(`"${part}" is no group of replicas; write for example h200:4,h100:4`);
    return { gpu, count: Number(count) };
  });
}

/** So many replicas at a part of their speed. */
export interface SlowGroup {
  readonly speed: number;
  readonly count: number;
}

/** `0.5x2`: two replicas at half their speed, the first ones. */
export function parseSlow(text: string): SlowGroup {
  const match = /^(\d*\.?\d+)x(\d+)$/u.exec(text);
  const speed = Number(match?.[1]);
  if (match === null || !(speed > 0)) throw new SpecError(`"${text}" is no slow group; write for example 0.5x2`);
  return { speed, count: Number(match[2]) };
}

/** `3:0.7:0.4`: three drafted tokens a step, each right with a chance of 0.7, at 0.4 ms a token; 0 ms if not said. */
export function parseSpeculation(text: string): EngineSetup["speculation"] {
  const [draftTokens = Number.NaN, acceptance = Number.NaN, draftMs = 0, ...more] = text.split(":").map(Number);
  const fits = Number.isInteger(draftTokens) && draftTokens >= 1 && acceptance >= 0 && acceptance <= 1 && draftMs >= 0;
  if (!fits || more.length > 0) throw new SpecError(`"${text}" is no speculation; write for example 3:0.7:0.4`);
  return { draftTokens, acceptance, draftMs };
}

/** The engines of a fleet. Step times and memory come from the tables of model and GPU. */
export function engineSetups(
  groups: readonly GpuGroup[],
  slow: SlowGroup | null,
  model: string,
  core: Omit<EngineSetup["core"], "times" | "kvBlocks"> & { readonly kvTokens: number | null },
  speculation: EngineSetup["speculation"] = null,
): readonly EngineSetup[] {
  const { kvTokens, ...options } = core;
  const setups = groups.flatMap(({ gpu, count }) => {
    const hardware = hardwareFor(model, gpu);
    if (hardware.prior === null) throw new SpecError(`nothing is known of ${model} on ${gpu}`);
    const kvBlocks = Math.floor((kvTokens ?? hardware.kvTokens) / options.blockTokens);
    return Array.from({ length: count }, (_, at) => ({
      name: `${gpu}-${at}`,
      prior: hardware.prior,
      core: { ...options, times: hardware.times, kvBlocks },
      slowFactor: 1,
      speculation,
    }));
  });
  const slowed = slow === null ? 0 : slow.count;
  if (slowed > setups.length) throw new SpecError(`${slowed} of ${setups.length} replicas cannot be slow`);
  return setups.map((setup, at) => (at < slowed ? { ...setup, slowFactor: 1 / slow!.speed } : setup));
}
