import type { Config } from "#src/config/schema.ts";

/** Of a configuration what decisions depend on. A recording has it too, and nothing else. */
export type DecisionConfig = Pick<Config, "policy" | "classes" | "limits" | "links"> & {
  readonly models: Readonly<Record<string, Pick<Config["models"][string], "policy" | "kvBytesPerToken">>>;
  /** Weights of keys by their names, where they are not 1. */
  readonly tenantWeights: Readonly<Record<string, number>>;
};

export function decisionConfig({ policy, models, classes, limits, links, keys }: Config): DecisionConfig {
  const kept = Object.entries(models).map(([name, { policy, kvBytesPerToken }]) => [
    name,
    {
      ...(policy === undefined ? {} : { policy }),
      ...(kvBytesPerToken === undefined ? {} : { kvBytesPerToken }),
    },
  ]);
  const weighted = keys.filter(({ weight }) => weight !== 1);
  return {
    policy,
    classes,
    limits,
    links,
    models: Object.fromEntries(kept) as DecisionConfig["models"],
    tenantWeights: Object.fromEntries(weighted.map(({ name, weight }) => [name, weight])),
  };
}
