import { ConfigError, problemAt } from "#src/config/configError.ts";
import { unknownName } from "#src/config/explainIssue.ts";
import { createPolicy, policyOptions } from "#src/routing/createPolicy.ts";
import { PolicyOptionError } from "#src/routing/options.ts";
import type { Policy } from "#src/routing/policy.ts";
import type { DecisionConfig } from "./decisionConfig.ts";

type PolicyConfig = DecisionConfig["policy"];

/** Only models of the fleet get here; the bound is for a fleet that renames its models all the time. */
const MAX_MODELS = 10_000;

/** The policy of each model, with its own state. Throws ConfigError for options that a policy does not take. */
export class Policies {
  readonly #fallback: PolicyConfig;
  readonly #byModel: ReadonlyMap<string, PolicyConfig>;
  readonly #made = new Map<string, { readonly from: PolicyConfig; readonly policy: Policy }>();

  /** What `previous` made stays in use where its configuration is the same, with the state it has. */
  constructor(config: Pick<DecisionConfig, "policy" | "models">, previous: Policies | null = null) {
    this.#fallback = config.policy;
    this.#byModel = new Map(
      Object.entries(config.models).flatMap(([model, { policy }]) => (policy === undefined ? [] : [[model, policy]])),
    );
    check(config, ["policy"], config.policy);
    for (const [model, policy] of this.#byModel) check(config, ["models", model, "policy"], policy);
    if (previous === null) return;
    for (const [model, made] of previous.#made) {
      if (JSON.stringify(made.from) === JSON.stringify(this.#configOf(model))) this.#made.set(model, made);
    }
  }

  of(model: string): Policy {
    const known = this.#made.get(model);
    if (known !== undefined) return known.policy;
    const from = this.#configOf(model);
    const policy = createPolicy(from.name, from.options);
    if (this.#made.size >= MAX_MODELS) this.#made.clear();
    this.#made.set(model, { from, policy });
    return policy;
  }

  #configOf(model: string): PolicyConfig {
    return this.#byModel.get(model) ?? this.#fallback;
  }
}

function check(config: object, key: readonly string[], { name, options }: PolicyConfig): void {
  try {
    createPolicy(name, options);
  } catch (caught) {
    if (!(caught instanceof PolicyOptionError)) throw caught;
    const option = caught.key.slice(caught.key.indexOf(".") + 1);
    const known = Object.keys(policyOptions(name));
    const what = known.includes(option)
      ? `${JSON.stringify(caught.value)} is not allowed; allowed: ${caught.allowed}`
      : unknownName("option", option, known);
    throw new ConfigError([problemAt(config, [...key, "options", option], what)], caught);
  }
}
