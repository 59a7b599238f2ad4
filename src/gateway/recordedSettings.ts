import { configFrom } from "#src/config/loadConfig.ts";
import type { SchedulerSettings } from "#src/scheduler/scheduler.ts";
import { decisionConfig, type DecisionConfig } from "./decisionConfig.ts";
import { Policies } from "./policies.ts";
import { schedulerSettings } from "./settings.ts";

/** The recorded part of a configuration. Throws ConfigError for what this version does not know. */
export function recordedConfig(recorded: unknown): DecisionConfig {
  const { tenantWeights = {}, ...settings } = recorded as Partial<DecisionConfig>;
  return { ...decisionConfig(configFrom(settings)), tenantWeights };
}

/** Gives a scheduler what it goes by, time after time as a running router does: policies that stay keep their state. */
export function recordedSettings(): (recorded: unknown) => SchedulerSettings {
  let policies: Policies | null = null;
  return (recorded) => {
    const config = recordedConfig(recorded);
    policies = new Policies(config, policies);
    return schedulerSettings(config, policies);
  };
}
