import type { ConfigError } from "#src/config/configError.ts";
import { isLoopback } from "#src/config/loopback.ts";
import type { Config } from "#src/config/schema.ts";
import { configWarnings } from "#src/config/warnings.ts";
import type { Conditions } from "#src/fleet/conditions.ts";
import type { RequestLog } from "#src/telemetry/requestLog.ts";

/** What an operator must hear of a configuration: as conditions, and in the log. */
export class ConfigConditions {
  readonly #conditions: Conditions;
  readonly #log: RequestLog;

  constructor(conditions: Conditions, log: RequestLog) {
    this.#conditions = conditions;
    this.#log = log;
  }

  /** It is in use. */
  taken(config: Config, nowMs: number): void {
    for (const warning of configWarnings(config)) this.#log.event("warn", warning);
    const { keys, listen } = config;
    if (keys.length > 0 || isLoopback(listen.host)) {
      this.#conditions.clear("gateway_open", null);
      return;
    }
    const message = "No client keys are configured: everybody who can reach the gateway may use it.";
    if (this.#conditions.raise("gateway_open", null, message, nowMs))
      this.#log.event("warn", message, { listen: listen.host });
  }

  /** It replaced the one before, but for the keys `waiting` for a restart. */
  reloaded(config: Config, waiting: readonly string[], nowMs: number): void {
    const message = `Changed, but only a restart takes it over: ${waiting.join(", ")}.`;
    this.#conditions.clear("config_refused", null);
    if (waiting.length === 0) this.#conditions.clear("restart_needed", null);
    else this.#conditions.raise("restart_needed", null, message, nowMs);
    this.taken(config, nowMs);
    this.#log.event(waiting.length > 0 ? "warn" : "info", "configuration reloaded", { restartNeededFor: waiting });
  }

  /** It cannot be used; the one before stays. */
  refused(error: ConfigError, nowMs: number): void {
    this.#log.event("error", "new configuration refused, the old one stays", { problems: error.problems });
    this.#conditions.raise("config_refused", null, error.message, nowMs);
  }
}
