import { createPolicy } from "#src/routing/createPolicy.ts";
import { SpecError } from "./fleetSpec.ts";
import type { Share } from "./workload/mix.ts";
import type { RouterSetup } from "./world/runSettings.ts";

/**
 * `kvasir`, `lmetric@queued`, `dynamo-cost:overlapWeight=2;temperature=0`: a policy, how it binds, its options. Kvasir's
 * own policy is taken with Kvasir's queue, the others send at once, as the routers they come from.
 */
export function parseRouter(text: string): RouterSetup {
  const [head = "", optionText] = text.split(":", 2);
  const [policy = "", binding] = head.split("@", 2);
  if (binding !== undefined && binding !== "queued" && binding !== "immediate")
    throw new SpecError(`"@${binding}" is not known; allowed: @queued, @immediate`);
  const options = Object.fromEntries((optionText ?? "").split(";").filter(Boolean).map(optionOf));
  createPolicy(policy, options);
  const queued = binding === undefined ? policy === "kvasir" : binding === "queued";
  return { label: text, policy, options, binding: queued ? "scheduler" : "immediate" };
}

function optionOf(text: string): [key: string, value: number] {
  const [key = "", value = ""] = text.split("=", 2);
  if (value.trim() === "" || Number.isNaN(Number(value)))
    throw new SpecError(`"${text}" is no option; write for example overlapWeight=2`);
  return [key, Number(value)];
}

/** `interactive:0.1,batch:0.9`: names with weights; a name alone weighs 1. */
export function parseShares(text: string): readonly Share[] {
  return text.split(",").map((part) => {
    const [name = "", weightText = "1"] = part.split(":", 2);
    const weight = Number(weightText);
    if (name === "" || !(weight > 0)) throw new SpecError(`"${part}" is no share; write for example batch:0.9`);
    return { name, weight };
  });
}
