import { Policies } from "#src/gateway/policies.ts";
import { schedulerSettings } from "#src/gateway/settings.ts";
import type { DecisionConfig } from "#src/gateway/decisionConfig.ts";
import { OtherPolicy, recordedChoices } from "#src/recording/replay/otherPolicy.ts";
import { Replay } from "#src/recording/replay/replay.ts";
import { priceSettings } from "#src/routing/policies/kvasir.ts";
import type { Policy } from "#src/routing/policy.ts";
import { RecordProgress } from "./recordProgress.ts";
import type { RecordedRun } from "./recordedRun.ts";

/** Shown on the terminal; the JSON has them all. */
const SHOWN = 10;

/** Asks the policies of another configuration at each recorded decision. */
export function otherDecisions({ recording, config }: RecordedRun, other: DecisionConfig): OtherPolicy {
  const prices = priceSettings(config.policy.name === "kvasir" ? config.policy.options : {});
  const asked = new OtherPolicy(recordedChoices(recording.records()), prices);
  const policies = new Policies(other);
  const following = new Map<Policy, Policy>();
  const policyFor = (model: string): Policy => {
    const policy = policies.of(model);
    let followed = following.get(policy);
    if (followed === undefined) following.set(policy, (followed = asked.following(policy)));
    return followed;
  };
  const progress = new RecordProgress(process.stderr);
  const remarks = recording.remarks.length;
  new Replay(recording, {
    // A reload of the time changed the recorded policy, and not the one that is asked now.
    settings: () => ({ ...schedulerSettings(config, policies), policyFor }),
    isExact: false,
    onDecision: (_recorded, made, ticket) => {
      if (made !== null) asked.decided(ticket);
    },
    onProgress: (records) => progress.show(records),
  }).run();
  progress.end();
  // They were made when it was read first.
  recording.remarks.length = remarks;
  return asked;
}

export function otherDecisionsText(asked: OtherPolicy, beganMs: number): string[] {
  const { agreed, disagreed, dearerMs, disagreements, unlike } = asked;
  const compared = agreed + disagreed;
  if (compared === 0) return ["No decision could be compared."];
  const lines = [
    `With what was known at each decision, it would have chosen otherwise in ${disagreed} of ${compared} ` +
      `(${((100 * disagreed) / compared).toFixed(1)}%).`,
  ];
  if (unlike > 0) lines.push(`${unlike} decisions could not be compared: the recorded replica was no candidate here.`);
  if (disagreed === 0) return lines;
  lines.push(
    `By the recorded price its choices are ${(dearerMs / disagreed).toFixed(1)} ms dearer each; the largest differences:`,
  );
  const largest = disagreements
    .map((one) => ({ ...one, dearerMs: one.otherMs - one.recordedMs }))
    .toSorted((a, b) => Math.abs(b.dearerMs) - Math.abs(a.dearerMs))
    .slice(0, SHOWN);
  for (const { atMs, request, recorded, other, recordedMs, otherMs } of largest)
    lines.push(
      `  ${((atMs - beganMs) / 1000).toFixed(3)} s, request ${request}: ` +
        `${recorded} at ${recordedMs.toFixed(1)} ms, it ${other} at ${otherMs.toFixed(1)} ms`,
    );
  return lines;
}
