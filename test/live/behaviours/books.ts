// What the router counts, read from everywhere it counts it.
import type { Setup } from "../gatewaySetup.ts";

const LOAD = [
  "requests",
  "sequences",
  "waitingSequences",
  "decodingSequences",
  "decodeKvTokens",
  "pendingPrefillTokens",
  "pendingPrefillMs",
  "reservedKvTokens",
  "remainingOutputTokens",
] as const;

const GAUGES =
  /^(kvasir_(?:requests_in_flight|queue_requests|queue_bytes|replica_requests_reserved|replica_pending_prefill_tokens)\S*) (\S+)$/gm;

/** Every count of work under way, by name, in ledger, scheduler and metrics. */
export async function counters({ router, adminUrl }: Setup): Promise<Record<string, number>> {
  const { fleet, scheduler } = router;
  const counted: Record<string, number> = {
    ledger: fleet.ledger.size,
    inFlight: scheduler.inFlight,
    queued: scheduler.depth.requests,
    queuedBytes: scheduler.depth.bytes,
    pendingPrefixes: fleet.index.pending,
  };
  for (const { id, load } of fleet.replicas()) for (const name of LOAD) counted[`${id} ${name}`] = load[name];
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  for (const [, name = "", value] of metrics.matchAll(GAUGES)) counted[name] = Number(value);
  return counted;
}

/** Those that are not zero. */
export async function leftOver(setup: Setup): Promise<Record<string, number>> {
  return Object.fromEntries(Object.entries(await counters(setup)).filter(([, value]) => value !== 0));
}

/** The value of one series; null: there is none. */
export async function metric(setup: Setup, series: string): Promise<number | null> {
  const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
  const line = metrics.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length + 1));
}

/** The share of an answer's prompt that the router expected in the cache of the replica it chose. */
export function expectedHit(setup: Setup): number {
  const [decision] = setup.router.decisions.recent(1);
  return decision === undefined ? 0 : decision.cachedTokens(decision.chosen) / decision.promptTokens;
}
