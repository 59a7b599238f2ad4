import type { KvEventEndpoints } from "../../discovery/replicaSpec.ts";
import type { AdvertisedEvents } from "./advertisedEvents.ts";
import type { KvEventAddress } from "./stream/sockets.ts";

const TCP = /^tcp:\/\/(.*):(\d+)$/;
const WILDCARDS = new Set(["*", "0.0.0.0", "[::]", "::"]);

/**
 * The address of a rank by configuration: the given one, with the engine's own host for a wildcard, and the port of the
 * rank. Null: there is no such port, or a path for more than one rank.
 */
export function configuredAddress(
  { endpoint, replayEndpoint, topic, bind = false }: KvEventEndpoints,
  engineUrl: string,
  rank: number,
): KvEventAddress | null {
  const host = new URL(engineUrl).hostname;
  // An address to bind is one of this machine, where a wildcard means every interface.
  const events = onRank(endpoint, rank, bind ? null : host);
  const replay = replayEndpoint === null ? null : onRank(replayEndpoint, rank, host);
  return events === null || (replay === null && replayEndpoint !== null) ? null : { events, replay, topic, bind };
}

/**
 * The endpoints by what the engine says itself. It knows its ports; which host it is reached by, the router knows. Null:
 * it publishes to an address that it connects to, and the router binds none that was not configured.
 */
export function endpointsOf({ endpoint, replayEndpoint, topic }: AdvertisedEvents): KvEventEndpoints | null {
  const [, host = ""] = TCP.exec(endpoint) ?? [];
  if (!WILDCARDS.has(host)) return null;
  return { endpoint: onOwnHost(endpoint), replayEndpoint: replayEndpoint && onOwnHost(replayEndpoint), topic };
}

function onOwnHost(address: string): string {
  return address.replace(TCP, "tcp://*:$2");
}

function onRank(address: string, rank: number, ownHost: string | null): string | null {
  const [, host = "", firstPort] = TCP.exec(address) ?? [];
  if (firstPort === undefined) return rank === 0 ? address : null;
  const port = Number(firstPort) + rank;
  if (port > 65_535) return null;
  return `tcp://${ownHost !== null && WILDCARDS.has(host) ? ownHost : host}:${port}`;
}
