import type { Examination } from "../examine.ts";
import { isSeen, type Sighting } from "../sighting.ts";
import { countFindings } from "./verdict.ts";

/** The examination for machines. Findings have the members of `Finding`. */
export function jsonReport({ sightings, findings }: Examination): string {
  return JSON.stringify({ counts: countFindings(findings), engines: sightings.map(engineOf), findings }, null, 2);
}

function engineOf(sighting: Sighting): unknown {
  const { name, url } = sighting.endpoint;
  if (!isSeen(sighting)) return { name, url, kind: null };
  const { kind, version, dataParallelRanks, models } = sighting.profile;
  return { name, url, kind, version, dataParallelRanks, models: models.map(({ id }) => id) };
}
