import type { Config } from "#src/config/schema.ts";

/** Of a configuration what decisions depend on. A recording has it too, and nothing else. */
export type DecisionConfig = Pick<Config, "policy" | "classes" | "limits" | "links"> & {
  readonly models: Readonly<Record<string, Pick<Config["models"][string], "policy" | "kvBytesPerToken">>>;
};

export function decisionConfig({ policy, models, classes, limits, links }: Config): DecisionConfig {
  const kept = Object.entries(models).map(([name, { policy, kvBytesPerToken }]) => [
    name,
    {
      ...(policy === undefined ? {} : { policy }),
      ...(kvBytesPerToken === undefined ? {} : { kvBytesPerToken }),
    },
  ]);
  return { policy, classes, limits, links, models: Object.fromEntries(kept) as DecisionConfig["models"] };
}
