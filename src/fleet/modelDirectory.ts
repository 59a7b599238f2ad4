import type { ServedModel } from "#src/engines/vocabulary.ts";
import type { Replica } from "./replica.ts";

/** What a client's model name means in this fleet. */
export interface ResolvedModel {
  /** Name of the pool: the base model. */
  readonly model: string;
  readonly adapter: string | null;
}

const NOBODY: readonly Replica[] = [];

/** Who serves what, over all replicas whatever their state: a model whose replicas are down is unavailable, not unknown. */
export class ModelDirectory {
  readonly #pools = new Map<string, Replica[]>();
  readonly #models = new Map<string, ServedModel>();

  constructor(replicas: Iterable<Replica>) {
    for (const replica of replicas) {
      const served = replica.profile?.models ?? [];
      const bases = served.filter(({ parent }) => parent === null).map(({ id }) => id);
      for (const base of bases) {
        const pool = this.#pools.get(base);
        if (pool === undefined) this.#pools.set(base, [replica]);
        else if (!pool.includes(replica)) pool.push(replica);
      }
      for (const model of served) this.#join(withKnownParent(model, bases));
    }
  }

  pool(model: string): readonly Replica[] {
    return this.#pools.get(model) ?? NOBODY;
  }

  models(): readonly ServedModel[] {
    return [...this.#models.values()];
  }

  resolve(name: string): ResolvedModel | null {
    const found = this.#models.get(name);
    if (found === undefined) return null;
    return found.parent === null ? { model: name, adapter: null } : { model: found.parent, adapter: name };
  }

  /** A name that is a base model on one replica is one for the fleet; the longest context counts. */
  #join(model: ServedModel): void {
    const known = this.#models.get(model.id);
    if (known === undefined) {
      this.#models.set(model.id, model);
      return;
    }
    const lengths = [known.maxModelTokens, model.maxModelTokens].filter((length) => length !== null);
    this.#models.set(model.id, {
      id: model.id,
      parent: known.parent === null ? null : model.parent,
      maxModelTokens: lengths.length === 0 ? null : Math.max(...lengths),
    });
  }
}

/** Some engines name an adapter's parent by path, or by a name they do not serve: it belongs to their first model. */
function withKnownParent(model: ServedModel, bases: readonly string[]): ServedModel {
  if (model.parent === null || bases.includes(model.parent)) return model;
  return { ...model, parent: bases[0] ?? model.parent };
}
