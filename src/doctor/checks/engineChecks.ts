import { found, type Finding, type Place } from "../findings/finding.ts";
import { kindOf, type SeenEngine, type Sighting } from "../sighting.ts";

/** A skew that matters to nobody, and that `Date` could not tell from a slow answer. */
const CLOCK_TOLERANCE_MS = 2000;

/** What is wrong with one engine, whatever the others are. */
export function checkEngine(sighting: Sighting): Finding[] {
  const { endpoint } = sighting;
  const place = { replica: endpoint.name, kind: kindOf(sighting) };
  if (sighting.kind === "unreachable") return [found("engine_unreachable", place, sighting.why)];
  if (sighting.kind === "unknown") {
    return [found("engine_unknown", place, `${endpoint.url} answers, but not like any engine that is known here.`)];
  }
  return [
    ...checkKind(sighting, place),
    ...checkState(sighting, place),
    ...checkFacts(sighting, place),
    ...checkLimits(sighting, place),
    ...checkClock(sighting, place),
  ];
}

function checkKind({ endpoint, profile }: SeenEngine, place: Place): Finding[] {
  const findings: Finding[] = [];
  if (endpoint.engine !== null && endpoint.engine !== profile.kind) {
    const message = `It is configured as ${endpoint.engine}, but answers like ${profile.kind}.`;
    findings.push(found("engine_kind_differs", place, message));
  }
  const ranks = endpoint.dataParallelRanks;
  if (ranks !== null && ranks !== profile.dataParallelRanks) {
    const message = `It is configured with ${ranks} data-parallel ranks, but shows ${profile.dataParallelRanks}.`;
    findings.push(found("ranks_differ", place, message));
  }
  if (profile.models.length === 0) findings.push(found("no_models", place, "Its /v1/models names none."));
  return findings;
}

function checkState({ health, scrape }: SeenEngine, place: Place): Finding[] {
  const findings: Finding[] = [];
  if (health !== "ready") {
    const said = { loading: "says that it loads", unready: "does not answer 200", silent: "does not answer in time" };
    findings.push(found("engine_not_ready", place, `Its health route ${said[health]}.`));
  }
  const asleep = [...(scrape?.byRank.values() ?? [])].some((metrics) => metrics.asleep === true);
  if (asleep) findings.push(found("engine_asleep", place, "Its metrics say that it sleeps."));
  return findings;
}

function checkFacts({ profile, scrape, scrapeFailure, lookedFor }: SeenEngine, place: Place): Finding[] {
  const findings: Finding[] = [];
  if (scrape === null)
    findings.push(found("metrics_unavailable", place, scrapeFailure ?? "Its metrics cannot be read."));
  else if (scrape.missing.length > 0) {
    const facts = scrape.missing.map((fact) => `${fact} (${lookedFor[fact]?.join(" or ") ?? "no known name"})`);
    findings.push(found("metrics_missing", place, `It does not publish ${facts.join(", ")}.`));
  }
  const byMetrics = [...(scrape?.byRank.values() ?? [])].map((metrics) => metrics.prefixCachingEnabled);
  if (byMetrics.includes(false) || profile.prefixCachingEnabled === false) {
    findings.push(found("prefix_caching_off", place, "It says that prefix caching is off."));
  }
  return findings;
}

/** What the fleet would have to assume: neither configuration nor engine says it. */
function checkLimits({ endpoint, profile, scrape }: SeenEngine, place: Place): Finding[] {
  const [metrics] = scrape?.byRank.values() ?? [];
  const unknown = [
    ...((endpoint.maxRunningRequests ?? metrics?.maxRunningRequests ?? profile.maxRunningRequests) === null
      ? ["how many sequences it runs at a time (256 are assumed)"]
      : []),
    ...((endpoint.kvCapacityTokens ?? metrics?.kvCapacityTokens ?? profile.kvCapacityTokens) === null
      ? ["how much KV memory it has (450000 tokens are assumed)"]
      : []),
  ];
  return unknown.length === 0 ? [] : [found("limits_assumed", place, `It does not tell ${unknown.join(", nor ")}.`)];
}

function checkClock({ clock, probe }: SeenEngine, place: Place): Finding[] {
  const { dateAheadMs, startsInMs } = clock;
  const event = probe !== null && typeof probe.event === "object" ? probe.event : null;
  // A batch that came late says nothing about the clock that stamped it, unless it came before it was made.
  const eventAheadMs = event === null ? 0 : event.aheadMs;
  const seen = [
    ...(dateAheadMs !== null && Math.abs(dateAheadMs) > CLOCK_TOLERANCE_MS
      ? [`its Date is ${apart(dateAheadMs)}`]
      : []),
    ...(startsInMs !== null && startsInMs > CLOCK_TOLERANCE_MS ? [`it started ${seconds(startsInMs)} from now`] : []),
    ...(Math.abs(eventAheadMs) > CLOCK_TOLERANCE_MS ? [`its KV events are ${apart(eventAheadMs)}`] : []),
  ];
  return seen.length === 0 ? [] : [found("clock_skew", place, `By this machine's clock, ${seen.join(", ")}.`)];
}

function apart(aheadMs: number): string {
  return `${seconds(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead" : "behind"}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
