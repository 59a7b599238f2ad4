import type { DecisionConfig } from "#src/gateway/decisionConfig.ts";
import { Policies } from "#src/gateway/policies.ts";
import { recordedConfig, recordedSettings } from "#src/gateway/recordedSettings.ts";
import { schedulerSettings } from "#src/gateway/settings.ts";
import { Recording } from "#src/recording/read/recording.ts";
import { Replay, type ReplayReport } from "#src/recording/replay/replay.ts";
import type { ComparisonPlan } from "#src/simulator/comparison.ts";
import { planOf } from "#src/simulator/plan.ts";
import type { PlanFlags } from "#src/simulator/plan.ts";
import { recordedPlan } from "#src/simulator/recordedPlan.ts";
import type { Recorded } from "#src/simulator/recordedPlan.ts";
import { traceOfRecords } from "#src/simulator/traces/recordingTrace.ts";
import type { RouterSetup } from "#src/simulator/world/runSettings.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { simulateCommand } from "../simulate.ts";
import { RecordProgress } from "./recordProgress.ts";

const MAX_REQUESTS = 5_000_000;

/** A recording that was decided again, and what can be asked of it. */
export interface RecordedRun {
  readonly recording: Recording;
  readonly report: ReplayReport;
  /** As the configuration was at the recording's end. */
  readonly config: DecisionConfig;
  readonly replay: Replay;
}

/** Decides a recording again. Throws RecordingError. */
export function decideAgain(path: string, keyFile: string | undefined): RecordedRun {
  const recording = new Recording(path, keyFile);
  const { version } = recording.first;
  if (version !== packageJson.version)
    recording.remarks.push(`recorded by Kvasir ${version}, decided again by ${packageJson.version}`);
  const progress = new RecordProgress(process.stderr);
  const settings = recordedSettings();
  let last: unknown = null;
  const replay = new Replay(recording, {
    settings: (recorded) => settings((last = recorded)),
    onProgress: (records) => progress.show(records),
  });
  const report = replay.run();
  progress.end();
  return { recording, report, config: recordedConfig(last), replay };
}

/** What a simulation needs of it. Throws TraceError. */
export function recordedTraffic({ recording, config, replay }: RecordedRun, onlyModel?: string): Recorded {
  const trace = traceOfRecords(recording.records(), recording.parts[0]!.path, MAX_REQUESTS, onlyModel);
  const { limits, classes } = schedulerSettings(config, new Policies(config));
  return {
    fleet: replay.fleet,
    model: trace.model!,
    trace,
    queue: limits!,
    classes: classes!.all(),
    maxRetries: config.limits.retries,
  };
}

/** The policy that a configuration has for a model, as a simulated router. */
export function routerOf(config: DecisionConfig, model: string, label: string): RouterSetup {
  const { name, options } = config.models[model]?.policy ?? config.policy;
  return { label, policy: name, options, binding: "scheduler" };
}

/** With what is not recorded as `kvasir simulate` takes it where nobody says. */
export function simulated(
  recorded: Recorded,
  routers: readonly RouterSetup[],
  seeds: readonly number[],
): ComparisonPlan {
  const { settings } = planOf({ ...simulateCommand().opts<PlanFlags>(), shape: "chat" });
  return recordedPlan(recorded, settings, routers, seeds);
}

/** `name=value` over a configuration: `limits.…` of the queue, else an option of each policy. Throws RangeError. */
export function changed(
  config: DecisionConfig,
  policy: string | undefined,
  settings: readonly (readonly [name: string, value: number])[],
): DecisionConfig {
  const limits: Record<string, unknown> = { ...config.limits };
  const options: Record<string, number> = {};
  for (const [name, value] of settings) {
    const limit = /^limits\.(\w+)$/u.exec(name)?.[1];
    if (limit === undefined) options[name] = value;
    else limits[limit] = value;
  }
  const over = (own: DecisionConfig["policy"]) => ({ name: own.name, options: { ...own.options, ...options } });
  const models =
    policy === undefined
      ? Object.fromEntries(
          Object.entries(config.models).map(([name, own]) => [
            name,
            own.policy === undefined ? {} : { policy: over(own.policy) },
          ]),
        )
      : {};
  const wanted = policy === undefined ? over(config.policy) : { name: policy, options };
  const { classes, tenantWeights } = config;
  // Once more through the schema, which says what is not allowed.
  return recordedConfig({ policy: wanted, limits, classes, models, tenantWeights });
}
