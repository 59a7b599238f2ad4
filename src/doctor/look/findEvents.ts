import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { AskEngine, EngineProfile } from "#src/engines/engineAdapter.ts";
import { askForAdvertisedEvents, type AdvertisedEvents } from "#src/engines/events/advertisedEvents.ts";
import { configuredAddress, endpointsOf } from "#src/engines/events/eventAddresses.ts";
import type { KvEventAddress } from "#src/engines/events/stream/sockets.ts";
import type { EventReading } from "../sighting.ts";

/** vLLM collects facts of its machine for the first answer, which was seen to take longer than any other question may. */
const INFO_LIMIT_MS = 30_000;

export type FoundEvents =
  | Exclude<EventReading, { kind: "published" }>
  | { readonly kind: "published"; readonly addresses: readonly (KvEventAddress | null)[] };

/** Where the engine's KV events are: as the router finds out, from the configuration or else from the engine. */
export async function findEvents(
  endpoint: EngineEndpoint,
  profile: EngineProfile,
  ask: AskEngine,
): Promise<FoundEvents> {
  if (profile.kind === "llamacpp") return { kind: "none" };
  if (endpoint.kvEvents === null) return { kind: "off", why: "engines[].kvEvents is null." };
  if (endpoint.kvEvents?.endpoint === "pull" || endpoint.kvEvents?.bind === true) return { kind: "exclusive" };
  let advertised: AdvertisedEvents | null = null;
  if (endpoint.kvEvents === undefined) {
    try {
      advertised = await askForAdvertisedEvents((path, options) => ask(path, { timeoutMs: INFO_LIMIT_MS, ...options }));
    } catch (caught) {
      const why = caught instanceof Error ? caught.message : String(caught);
      return { kind: "off", why: `The configuration names none, and the engine could not be asked: ${why}` };
    }
  }
  const source = endpoint.kvEvents ?? (advertised === null ? null : endpointsOf(advertised));
  if (source === null) {
    const why =
      advertised === null
        ? "The configuration names none, and the engine does not say that it publishes any."
        : `The engine connects to ${advertised.endpoint}, and the router listens there only if engines[].kvEvents says so.`;
    return { kind: "off", why };
  }
  const ranks = endpoint.dataParallelRanks ?? advertised?.dataParallelRanks ?? profile.dataParallelRanks;
  const addresses = Array.from({ length: ranks }, (_, rank) => configuredAddress(source, endpoint.url, rank));
  return { kind: "published", addresses };
}
