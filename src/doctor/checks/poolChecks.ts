import { createHash } from "node:crypto";
import type { FindingId } from "../findings/catalogue.ts";
import { found, type Finding } from "../findings/finding.ts";
import { isSeen, type SeenEngine, type Sighting } from "../sighting.ts";

/** What differs between the engines that serve one model, and the models that none serves. */
export function checkPools(sightings: readonly Sighting[], wantedModels: readonly string[]): Finding[] {
  const byModel = pools(sightings);
  const differences = [...byModel].flatMap(([model, engines]) => checkPool(model, engines));
  // Engines that serve a model under several names differ in the same way under each.
  const told = new Map(differences.toReversed().map((finding) => [`${finding.id} ${finding.message}`, finding]));
  return [...[...told.values()].reverse(), ...checkWanted(sightings, wantedModels)];
}

function checkWanted(sightings: readonly Sighting[], wantedModels: readonly string[]): Finding[] {
  const served = new Set(sightings.filter(isSeen).flatMap(({ profile }) => profile.models.map(({ id }) => id)));
  return wantedModels
    .filter((model) => !served.has(model))
    .map((model) =>
      found("model_not_served", { model }, `models.${model} is configured, and no engine that answers serves it.`),
    );
}

/** Engines by the base models they serve. */
function pools(sightings: readonly Sighting[]): Map<string, SeenEngine[]> {
  const byModel = new Map<string, SeenEngine[]>();
  for (const sighting of sightings.filter(isSeen)) {
    for (const { id, parent } of sighting.profile.models) {
      if (parent !== null) continue;
      const engines = byModel.get(id) ?? [];
      byModel.set(id, [...engines, sighting]);
    }
  }
  return byModel;
}

/** One fact of an engine as text; null: unknown, so it differs from nothing. */
type Fact = (engine: SeenEngine, model: string) => string | null;

const FACTS: readonly (readonly [FindingId, string, Fact])[] = [
  ["block_sizes_differ", "Tokens in a block", (engine) => text(blockTokensOf(engine))],
  ["hash_algorithms_differ", "Hash algorithms", ({ hashAlgorithm }) => hashAlgorithm],
  ["tokenizers_differ", "Tokens of one text and one chat", digest],
  ["max_model_len_differs", "Longest prompt and answer together", longest],
  ["models_differ", "Models", (engine) => names(engine, false)],
  ["adapters_differ", "Adapters", (engine) => names(engine, true)],
  ["versions_differ", "Versions", ({ profile }) => `${profile.kind} ${profile.version ?? "unknown"}`],
];

const EXPLAINS_HASHES: ReadonlySet<FindingId> = new Set([
  "block_sizes_differ",
  "hash_algorithms_differ",
  "tokenizers_differ",
]);

function checkPool(model: string, engines: readonly SeenEngine[]): Finding[] {
  const findings = [
    ...checkTokenizer(model, engines),
    ...FACTS.flatMap(([id, what, fact]) => compare(id, what, model, engines, fact)),
  ];
  // With other blocks, algorithms or tokens the hashes differ anyway.
  const explained = findings.some(({ id }) => EXPLAINS_HASHES.has(id));
  return explained
    ? findings
    : [...findings, ...compare("hash_seeds_differ", "Hash of one block", model, engines, firstHash)];
}

/** Events name blocks by tokens, and are of little use to who does not know the tokens of a prompt. */
function checkTokenizer(model: string, engines: readonly SeenEngine[]): Finding[] {
  const isTold = engines.some(({ events }) => events.kind === "published" || events.kind === "exclusive");
  const isMissing = engines.every(({ tokens }) => tokens.own.kind === "none");
  if (!isTold || !isMissing) return [];
  return [
    found("tokenizer_missing", { model }, `Its engines publish KV events, and models.${model}.tokenizer is not set.`),
  ];
}

function compare(id: FindingId, what: string, model: string, engines: readonly SeenEngine[], fact: Fact): Finding[] {
  const byValue = new Map<string, SeenEngine[]>();
  for (const engine of engines) {
    const value = fact(engine, model);
    if (value !== null) byValue.set(value, [...(byValue.get(value) ?? []), engine]);
  }
  if (byValue.size < 2) return [];
  const parts = [...byValue].map(
    ([value, having]) => `${value} (${having.map(({ endpoint }) => endpoint.name).join(", ")})`,
  );
  const kinds = new Set(engines.map(({ profile }) => profile.kind));
  const [kind] = kinds;
  return [found(id, { model, kind: kinds.size === 1 ? kind : undefined }, `${what}: ${parts.join("; ")}.`)];
}

function blockTokensOf({ probe, profile, scrape }: SeenEngine): number | null {
  // Events say it best: an engine's page can be another than the blocks it tells of.
  const told = typeof probe?.event === "object" ? probe.event?.blockTokens : null;
  const [metrics] = scrape?.byRank.values() ?? [];
  return told ?? metrics?.kvBlockTokens ?? profile.kvBlockTokens;
}

/** All engines got the same prompt. */
function firstHash({ probe }: SeenEngine): string | null {
  return typeof probe?.event === "object" && probe.event !== null ? probe.event.firstHash.toString(16) : null;
}

function longest({ profile }: SeenEngine, model: string): string | null {
  return text(profile.models.find(({ id }) => id === model)?.maxModelTokens ?? null);
}

/** In order of the alphabet, since engines list them in any. */
function names({ profile }: SeenEngine, areAdapters: boolean): string {
  const listed = profile.models.filter(({ parent }) => (parent !== null) === areAdapters).map(({ id }) => id);
  return listed.length === 0 ? "none" : listed.sort().join(" and ");
}

/** Null unless the engine told both: one with a template can't be compared with one without. */
function digest({ tokens: { prompt, chat } }: SeenEngine): string | null {
  if (prompt === null || chat === null) return null;
  const hash = createHash("sha256").update(`${prompt.join()};${chat.join()}`).digest("hex").slice(0, 8);
  return `${prompt.length} and ${chat.length}, together ${hash}`;
}

function text(value: number | null): string | null {
  return value === null ? null : String(value);
}
