import { PolicyOptionError, readOptions } from "./options.ts";
import type { OptionTable } from "./options.ts";
import { DYNAMO_COST_OPTIONS, DynamoCostPolicy } from "./policies/dynamoCost.ts";
import { KVASIR_OPTIONS, KvasirPolicy } from "./policies/kvasir.ts";
import { LeastConnectionsPolicy } from "./policies/leastConnections.ts";
import { LMETRIC_OPTIONS, LMetricPolicy } from "./policies/lmetric.ts";
import { PowerOfTwoPolicy } from "./policies/powerOfTwo.ts";
import { PREFIX_HASH_OPTIONS, PrefixHashPolicy } from "./policies/prefixHash.ts";
import { PREFIX_SCORER_OPTIONS, PrefixScorerPolicy } from "./policies/prefixScorer.ts";
import { RandomPolicy } from "./policies/random.ts";
import { RoundRobinPolicy } from "./policies/roundRobin.ts";
import { SESSION_OPTIONS, SessionPolicy } from "./policies/session.ts";
import { TREE_MATCH_OPTIONS, TreeMatchPolicy } from "./policies/treeMatch.ts";
import type { Policy } from "./policy.ts";

type GivenOptions = Readonly<Record<string, unknown>>;

interface PolicyKind {
  readonly options: OptionTable;
  readonly create: (options: GivenOptions) => Policy;
}

const KINDS = {
  kvasir: { options: KVASIR_OPTIONS, create: (options) => new KvasirPolicy(options) },
  "round-robin": { options: {}, create: () => new RoundRobinPolicy() },
  random: { options: {}, create: () => new RandomPolicy() },
  "least-connections": { options: {}, create: () => new LeastConnectionsPolicy() },
  "power-of-two": { options: {}, create: () => new PowerOfTwoPolicy() },
  session: { options: SESSION_OPTIONS, create: (options) => new SessionPolicy(options) },
  "prefix-hash": { options: PREFIX_HASH_OPTIONS, create: (options) => new PrefixHashPolicy(options) },
  "prefix-scorer": { options: PREFIX_SCORER_OPTIONS, create: (options) => new PrefixScorerPolicy(options) },
  "tree-match": { options: TREE_MATCH_OPTIONS, create: (options) => new TreeMatchPolicy(options) },
  "dynamo-cost": { options: DYNAMO_COST_OPTIONS, create: (options) => new DynamoCostPolicy(options) },
  lmetric: { options: LMETRIC_OPTIONS, create: (options) => new LMetricPolicy(options) },
} as const satisfies Record<string, PolicyKind>;

export type PolicyName = keyof typeof KINDS;

/** Kvasir's own policy first, then the baselines. */
export const POLICY_NAMES = Object.keys(KINDS) as readonly PolicyName[];

/** The options of a policy with defaults, ranges and what they mean; empty where it has none. */
export function policyOptions(name: PolicyName): OptionTable {
  return KINDS[name].options;
}

/**
 * A policy with its own state. Throws PolicyOptionError, naming key, value and what is allowed, for an unknown name, an
 * unknown option or a value out of range.
 */
export function createPolicy(name: string, options: GivenOptions = {}): Policy {
  if (!isPolicyName(name)) throw new PolicyOptionError("policy", name, POLICY_NAMES.join(", "));
  const kind: PolicyKind = KINDS[name];
  // Here too, for the policies that take none and would not look.
  readOptions(name, kind.options, options);
  return kind.create(options);
}

function isPolicyName(name: string): name is PolicyName {
  return Object.hasOwn(KINDS, name);
}
