import type { Config } from "#src/config/schema.ts";

/** Of a configuration what decisions depend on. A recording has it too, and nothing else. */
export type DecisionConfig = Pick<Config, "policy" | "classes" | "limits"> & {
  readonly models: Readonly<Record<string, Pick<Config["models"][string], "policy">>>;
};

export function decisionConfig({ policy, models, classes, limits }: Config): DecisionConfig {
  const policies = Object.entries(models).map(([name, { policy }]) => [name, policy === undefined ? {} : { policy }]);
  return { policy, classes, limits, models: Object.fromEntries(policies) as DecisionConfig["models"] };
}
