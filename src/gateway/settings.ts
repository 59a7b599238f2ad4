import type { Config } from "#src/config/schema.ts";
import { ClassTable } from "#src/scheduler/classes.ts";
import { QUEUE_LIMITS } from "#src/scheduler/queueLimits.ts";
import type { SchedulerSettings } from "#src/scheduler/scheduler.ts";
import type { GatewaySettings } from "./clientApi.ts";
import { Clients } from "./clients.ts";
import type { DecisionConfig } from "./decisionConfig.ts";
import { HTTP_LIMITS, type HttpLimits } from "./http/httpLimits.ts";
import { ModelNames } from "./modelNames.ts";
import type { Policies } from "./policies.ts";

/** What the client API needs of a configuration. */
export function gatewaySettings(config: Config, nowMs: number, previous: Clients | null = null): GatewaySettings {
  return {
    clients: new Clients(config.keys, nowMs, previous),
    names: new ModelNames(config.models),
    limits: config.limits,
    logRequests: config.log.requests,
  };
}

/** What the scheduler needs of a configuration. */
export function schedulerSettings(config: DecisionConfig, policies: Policies): SchedulerSettings {
  const { queueRequests, queueBytes, queueMs } = config.limits;
  const kvBytes = Object.entries(config.models).flatMap(([model, { kvBytesPerToken }]) =>
    kvBytesPerToken === undefined ? [] : [[model, kvBytesPerToken] as const],
  );
  return {
    links: { kinds: config.links, kvBytesPerToken: new Map(kvBytes) },
    policyFor: (model) => policies.of(model),
    classes: new ClassTable(Object.entries(config.classes).map(([name, settings]) => ({ name, ...settings }))),
    tenantWeight: tenantWeights(config.tenantWeights),
    limits: { ...QUEUE_LIMITS, maxRequests: queueRequests, maxBytes: queueBytes, maxWaitMs: queueMs },
  };
}

/** A tenant is a key, or one of several that a key speaks for: `key/tenant`. */
function tenantWeights(weights: DecisionConfig["tenantWeights"]): (tenant: string) => number {
  const byKey = new Map(Object.entries(weights));
  return (tenant) => byKey.get(tenant.split("/", 1)[0]!) ?? 1;
}

/** The limits of the client listener, read anew for each request, so that a reload changes them. */
export function httpLimits(config: () => Config): HttpLimits {
  return {
    ...HTTP_LIMITS,
    maxConnections: config().limits.connections,
    get maxHeaderBytes() {
      return config().limits.headerBytes;
    },
    get maxBodyBytes() {
      return config().limits.bodyBytes;
    },
    get maxHeldBytes() {
      return config().limits.bufferedBytes;
    },
    get requestMs() {
      return config().limits.receiveMs;
    },
  };
}
