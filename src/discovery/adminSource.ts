import { badEndpoint } from "./engineUrl.ts";
import { parseEndpoint } from "./parseEndpoint.ts";
import type { EngineEndpoint } from "./replicaSpec.ts";
import type { Source, SourceListener } from "./source.ts";

/** Endpoints added and removed through the admin API. They do not outlive the process. */
export class AdminSource implements Source {
  readonly name = "admin";
  readonly #maxEndpoints: number;
  readonly #byName = new Map<string, EngineEndpoint>();
  #listener: SourceListener | null = null;

  constructor({ maxEndpoints = 1024 }: { maxEndpoints?: number } = {}) {
    this.#maxEndpoints = maxEndpoints;
  }

  /**
   * Adds an endpoint, or replaces the one of the same name. `used`: all that are known; what another source names would
   * be left out. Throws RouterError `invalid_request`.
   */
  add(input: unknown, used: readonly EngineEndpoint[] = []): EngineEndpoint {
    const endpoint = parseEndpoint(input);
    const { name, url } = endpoint;
    const own = this.list();
    const foreign = used.filter((known) => !own.some((each) => each.name === known.name && each.url === known.url));
    const twin = [...foreign, ...own.filter((known) => known.name !== name)].find((known) => known.url === url);
    if (twin !== undefined) throw badEndpoint("url", `${url} is there already, as ${twin.name}.`);
    const namesake = foreign.find((known) => known.name === name);
    if (namesake !== undefined) throw badEndpoint("name", `${name} is there already, at ${namesake.url}.`);
    if (!this.#byName.has(endpoint.name) && this.#byName.size >= this.#maxEndpoints) {
      throw badEndpoint("endpoints", `at most ${this.#maxEndpoints} can be added.`);
    }
    this.#byName.set(endpoint.name, endpoint);
    this.#tell();
    return endpoint;
  }

  /** By name or URL. False: there is none such. */
  remove(nameOrUrl: string): boolean {
    const found = this.list().find((known) => known.name === nameOrUrl || known.url === nameOrUrl);
    if (found === undefined) return false;
    this.#byName.delete(found.name);
    this.#tell();
    return true;
  }

  list(): readonly EngineEndpoint[] {
    return [...this.#byName.values()];
  }

  start(listener: SourceListener): Promise<void> {
    this.#listener = listener;
    this.#tell();
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.#listener = null;
    return Promise.resolve();
  }

  #tell(): void {
    this.#listener?.endpoints(this.name, this.list());
  }
}
