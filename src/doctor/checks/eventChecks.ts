import { found, type Finding, type Place } from "../findings/finding.ts";
import { isSeen, kindOf, type RankReading, type Sighting } from "../sighting.ts";

/** Whether what an engine holds can be known from its events. */
export function checkEvents(sighting: Sighting): Finding[] {
  if (!isSeen(sighting)) return [];
  const { events, probe, endpoint } = sighting;
  const place = { replica: endpoint.name, kind: kindOf(sighting) };
  if (events.kind === "none") return [found("kv_events_none", place, "llama-server publishes no KV events.")];
  if (events.kind === "off") return [found("kv_events_off", place, events.why)];
  if (events.kind === "exclusive") return [];
  const findings = checkRanks(events.ranks, place);
  if (probe?.event === "missing") findings.push(found("kv_events_silent", place, silence(events.ranks)));
  if (probe?.event === "unreadable") {
    findings.push(found("kv_events_unreadable", place, "It publishes events that can't be decoded."));
  }
  return findings;
}

function checkRanks(ranks: readonly RankReading[], place: Place): Finding[] {
  const findings: Finding[] = [];
  const unreachable = ranks.filter((rank) => rank.unreachable !== null);
  const silent = ranks.filter((rank) => rank.unreachable === null && rank.replayFailure !== null);
  const missing = ranks.filter((rank) => rank.unreachable === null && rank.address?.replay === null);
  const [first] = unreachable;
  if (first !== undefined) {
    findings.push(found("kv_events_unreachable", place, `${namely(ranks, unreachable)}${first.unreachable}`));
  }
  if (silent[0] !== undefined) {
    findings.push(found("kv_replay_silent", place, `${namely(ranks, silent)}${silent[0].replayFailure}`));
  }
  if (missing.length > 0) findings.push(found("kv_replay_missing", place, "It publishes events without a replay."));
  return findings;
}

/** Which ranks, if not all. */
function namely(all: readonly RankReading[], some: readonly RankReading[]): string {
  if (all.length === 1) return "";
  return `Rank${some.length === 1 ? "" : "s"} ${some.map(({ rank }) => rank).join(", ")}: `;
}

function silence([first]: readonly RankReading[]): string {
  const topic = first?.address?.topic ?? "";
  const where = topic === "" ? "" : ` under the topic ${JSON.stringify(topic)}`;
  return `A new prompt of several blocks was computed, and ${first?.address?.events} told nothing of it${where}.`;
}
