import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import { checkEngine } from "./checks/engineChecks.ts";
import { checkEvents } from "./checks/eventChecks.ts";
import { checkPools } from "./checks/poolChecks.ts";
import { checkAnswers } from "./checks/probeChecks.ts";
import type { Finding } from "./findings/finding.ts";
import { lookAt } from "./look/lookAt.ts";
import type { LookTools } from "./look/lookTools.ts";
import type { Sighting } from "./sighting.ts";

/** Engines looked at at a time: each takes a few connections. */
const AT_A_TIME = 16;

export interface Examination {
  readonly sightings: readonly Sighting[];
  /** Engine by engine, then what concerns several. */
  readonly findings: readonly Finding[];
}

/** Looks at every engine of a fleet. `wantedModels`: those that the configuration has settings for. */
export async function examine(
  endpoints: readonly EngineEndpoint[],
  wantedModels: readonly string[],
  tools: LookTools,
): Promise<Examination> {
  const sightings: Sighting[] = [];
  const left = endpoints.entries();
  const lookOn = async (): Promise<void> => {
    for (const [at, endpoint] of left) sightings[at] = await lookAt(endpoint, tools);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lookOn));
  const alone = sightings.flatMap((sighting) => [
    ...checkEngine(sighting),
    ...checkEvents(sighting),
    ...checkAnswers(sighting),
  ]);
  return { sightings, findings: [...alone, ...checkPools(sightings, wantedModels)] };
}
