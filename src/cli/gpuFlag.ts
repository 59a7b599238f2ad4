import type { Command } from "commander";
import { knownGpus } from "#src/emulator/kvCapacity.ts";

/** Ends the program with the list of what is known where nothing is known of this GPU. */
export function refuseUnknownGpu(
  { model, gpu }: { readonly model: string; readonly gpu: string },
  command: Command,
): void {
  const known = knownGpus(model);
  if (!known.includes(gpu)) command.error(`error: --gpu ${gpu} is not known for ${model}: ${known.join(", ")}`);
}
