import type { AskEngine } from "#src/engines/engineAdapter.ts";
import type { ClockReading } from "../sighting.ts";

/** Compares the engine's clock with ours, which `wallMs` reads, since 1970. */
export async function readClock(
  ask: AskEngine,
  startedAtSeconds: number | null,
  wallMs: () => number,
): Promise<ClockReading> {
  const startsInMs = startedAtSeconds === null ? null : Math.max(0, startedAtSeconds * 1000 - wallMs());
  const beforeMs = wallMs();
  const answer = await ask("/v1/models").catch(() => null);
  const dateMs = Date.parse(answer?.headers["date"] ?? "");
  if (Number.isNaN(dateMs)) return { dateAheadMs: null, startsInMs };
  return { dateAheadMs: beyond(dateMs, beforeMs, wallMs()), startsInMs };
}

/** The header was cut to whole seconds and made sometime between question and answer. */
function beyond(dateMs: number, earliestMs: number, latestMs: number): number {
  if (dateMs > latestMs) return dateMs - latestMs;
  return dateMs + 1000 < earliestMs ? dateMs + 1000 - earliestMs : 0;
}
