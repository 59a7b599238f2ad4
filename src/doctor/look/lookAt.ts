import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { detectEngine, type DetectedEngine } from "#src/engines/detectEngine.ts";
import type { AskEngine } from "#src/engines/engineAdapter.ts";
import type { SeenEngine, Sighting } from "../sighting.ts";
import { readClock } from "./clock.ts";
import { EventTap } from "./eventTap.ts";
import { findEvents } from "./findEvents.ts";
import { readHashAlgorithm } from "./hashAlgorithm.ts";
import type { LookTools } from "./lookTools.ts";
import { probeEngine } from "./probe.ts";
import { baseModelOf, readTokens } from "./tokens.ts";

/** Asks one engine everything. Never rejects: what goes wrong is what was to be found out. */
export async function lookAt(endpoint: EngineEndpoint, tools: LookTools): Promise<Sighting> {
  const client = tools.open(endpoint);
  try {
    const detected = await detectEngine(client.ask, endpoint.engine);
    if (detected === null) return { kind: "unknown", endpoint };
    return await lookCloser(endpoint, detected, client.ask, tools);
  } catch (caught) {
    return { kind: "unreachable", endpoint, why: messageOf(caught) };
  } finally {
    await client.close();
  }
}

async function lookCloser(
  endpoint: EngineEndpoint,
  { adapter, profile }: DetectedEngine,
  ask: AskEngine,
  tools: LookTools,
): Promise<SeenEngine> {
  const health = await adapter.health(ask).catch(healthOfFailure);
  let scrapeFailure: string | null = null;
  const scrape = await adapter.scrape(ask).catch((caught: unknown) => {
    scrapeFailure = messageOf(caught);
    return null;
  });
  const found = await findEvents(endpoint, profile, ask);
  const tap = new EventTap(found.kind === "published" ? found.addresses : [], tools);
  try {
    const ranks = await tap.readings();
    const sighting: SeenEngine = {
      kind: "seen",
      endpoint,
      profile,
      health,
      scrape,
      scrapeFailure,
      lookedFor: adapter.factSources,
      hashAlgorithm: profile.kind === "vllm" ? await readHashAlgorithm(ask) : null,
      clock: await readClock(ask, scrape?.startedAtSeconds ?? null, tools.wallMs),
      events: found.kind === "published" ? { kind: "published", ranks } : found,
      tokens: await readTokens(profile, ask, tools.tokenizers),
      probe: null,
    };
    return canBeProbed(sighting)
      ? { ...sighting, probe: await probeEngine(sighting, { adapter, ask, tap }, tools) }
      : sighting;
  } finally {
    tap.close();
  }
}

/** A sleeping engine may not survive a request, and one that loads its model would only be waited for. */
function canBeProbed(sighting: SeenEngine): boolean {
  const asleep = [...(sighting.scrape?.byRank.values() ?? [])].some((metrics) => metrics.asleep === true);
  return sighting.health === "ready" && !asleep && baseModelOf(sighting.profile) !== null;
}

function healthOfFailure(caught: unknown): SeenEngine["health"] {
  return caught instanceof RouterError && caught.code === "engine_stalled" ? "silent" : "unready";
}

function messageOf(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught);
}
