import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { EngineProfile } from "#src/engines/engineAdapter.ts";
import type { EngineHealth, MissingFact, MonitorListener } from "#src/engines/monitorListener.ts";
import type { ScrapeResult, ServedModel } from "#src/engines/vocabulary.ts";
import type { RouterError } from "#src/errors/routerError.ts";

/** Everything a monitor told, in order, and the last of each sort by endpoint name. */
export class MonitorLog implements MonitorListener {
  readonly events: string[] = [];
  readonly profiles = new Map<string, EngineProfile>();
  readonly scrapes = new Map<string, ScrapeResult>();
  readonly healths = new Map<string, EngineHealth>();
  readonly modelLists = new Map<string, readonly ServedModel[]>();
  readonly missingFacts = new Map<string, readonly MissingFact[]>();
  readonly reasons = new Map<string, string>();

  /** How often something was told of an endpoint. */
  count(event: string, name: string): number {
    return this.events.filter((each) => each === `${event} ${name}`).length;
  }

  /** What was told of an endpoint, without the repetitions of its pace. */
  story(name: string): string[] {
    const own = this.events.filter((event) => event.endsWith(` ${name}`)).map((event) => event.split(" ")[0] ?? "");
    return own.filter((event, at) => event !== own[at - 1]);
  }

  identified(endpoint: EngineEndpoint, profile: EngineProfile): void {
    this.#note("identified", endpoint);
    this.profiles.set(endpoint.name, profile);
  }

  unidentified(endpoint: EngineEndpoint, why: string): void {
    this.#note("unidentified", endpoint);
    this.reasons.set(endpoint.name, why);
  }

  health(endpoint: EngineEndpoint, health: EngineHealth): void {
    this.#note(health, endpoint);
    this.healths.set(endpoint.name, health);
  }

  metrics(endpoint: EngineEndpoint, scrape: ScrapeResult): void {
    this.#note("metrics", endpoint);
    this.scrapes.set(endpoint.name, scrape);
  }

  scrapeFailed(endpoint: EngineEndpoint, cause: RouterError): void {
    this.#note("scrapeFailed", endpoint);
    this.reasons.set(endpoint.name, cause.message);
  }

  models(endpoint: EngineEndpoint, models: readonly ServedModel[]): void {
    this.#note("models", endpoint);
    this.modelLists.set(endpoint.name, models);
  }

  modelsFailed(endpoint: EngineEndpoint): void {
    this.#note("modelsFailed", endpoint);
  }

  missing(endpoint: EngineEndpoint, facts: readonly MissingFact[]): void {
    this.#note("missing", endpoint);
    this.missingFacts.set(endpoint.name, facts);
  }

  restarted(endpoint: EngineEndpoint): void {
    this.#note("restarted", endpoint);
  }

  #note(event: string, endpoint: EngineEndpoint): void {
    this.events.push(`${event} ${endpoint.name}`);
  }
}
