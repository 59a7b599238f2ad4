import type { Config } from "#src/config/schema.ts";
import type { ServedModel } from "#src/engines/vocabulary.ts";
import { missingModel, modelNotFound } from "#src/errors/shared.ts";
import type { Client } from "./clients.ts";
import { modelsNotKnown } from "./refusals.ts";

export type ModelSettings = Config["models"][string];

/** Client-side names of models, and what the configuration says of each. */
export class ModelNames {
  readonly #settings: ReadonlyMap<string, ModelSettings>;
  readonly #byAlias: ReadonlyMap<string, string>;

  constructor(models: Config["models"]) {
    this.#settings = new Map(Object.entries(models));
    this.#byAlias = new Map(
      Object.entries(models).flatMap(([name, { aliases }]) => aliases.map((alias) => [alias, name] as const)),
    );
  }

  /** The fleet's name for what a client calls `name`. */
  fleetName(name: string): string {
    return this.#byAlias.get(name) ?? name;
  }

  settings(fleetName: string): ModelSettings | null {
    return this.#settings.get(fleetName) ?? null;
  }

  /**
   * The fleet's model for a request. A request that names none means the only one there is: a base model, as adapters
   * are asked for by name.
   */
  choose(asked: string | null, served: readonly ServedModel[], client: Client): string {
    if (asked !== null) {
      const fleetName = this.fleetName(asked);
      if (mayUse(client, asked, fleetName)) return fleetName;
      throw modelNotFound(asked);
    }
    const bases = new Set(
      served.filter(({ id, parent }) => parent === null && mayUse(client, id, id)).map(({ id }) => id),
    );
    const [only] = bases;
    if (only !== undefined && bases.size === 1) return only;
    // As a request that names one would be told.
    if (served.length === 0) throw modelsNotKnown();
    throw missingModel("The request names no model, and there is not exactly one to choose from.");
  }

  /** All names that clients may use for the served models: the models' own and the aliases of those that are there. */
  *names(served: readonly ServedModel[], client: Client): Generator<ServedModel> {
    const seen = new Set<string>();
    for (const model of served) {
      if (seen.has(model.id)) continue;
      seen.add(model.id);
      if (mayUse(client, model.id, model.id)) yield model;
      for (const alias of this.#settings.get(model.id)?.aliases ?? []) {
        if (mayUse(client, alias, model.id)) yield { ...model, id: alias };
      }
    }
  }
}

/** A key that names the model may use its aliases too; a key that names an alias may use that name only. */
function mayUse({ models }: Client, asked: string, fleetName: string): boolean {
  return models === null || models.has(asked) || models.has(fleetName);
}
