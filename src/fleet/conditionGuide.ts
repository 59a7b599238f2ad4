/** What can be degraded. Metric label values, `/readyz` and docs/reference.md use these words. */
export type ConditionKey = keyof typeof CONDITION_GUIDE;

/** What a condition means for routing, and what whoever runs the router can do. */
export interface ConditionAdvice {
  readonly meaning: string;
  readonly mend: string;
}

/** Every condition there is, in the order of docs/reference.md. */
export const CONDITION_GUIDE = {
  role_not_serving: {
    meaning:
      "Replicas of a model are there, but none has a role in which it serves requests by itself, and no two are a pair.",
    mend: "Let one engine of this model be `mixed`, or have both `prefill` and `decode` engines that hand over alike.",
  },
  replica_unreachable: {
    meaning: "The replica does not answer, and gets no requests until it does.",
    mend: "Look whether the engine runs and whether its address is right: `kvasir doctor --engine URL`.",
  },
  replica_quarantined: {
    meaning:
      "Requests there failed or were refused in a row. It gets one now and then, and comes back when one succeeds.",
    mend: "Look at the engine's log. If it refuses because it is full, set `maxRunningRequests` to what it takes.",
  },
  engine_unidentified: {
    meaning: "What answers there is no engine that is known, or serves no model. It gets no requests.",
    mend: "Look whether the address is an engine's and not another service's; set `engine` if its kind cannot be seen.",
  },
  metrics_stale: {
    meaning: "The engine's metrics are old or were never read: load from elsewhere is not seen.",
    mend: "Let the router reach the engine's `/metrics`; SGLang wants `--enable-metrics`.",
  },
  metric_missing: {
    meaning: "The engine publishes metrics, but not these: own counts or priors stand in for them.",
    mend: "`kvasir doctor --engine URL` names the engine's flag. If a new version has renamed one, please report it.",
  },
  limits_assumed: {
    meaning:
      "Nobody says how much the engine takes at a time. Too high a guess queues there, too low a one wastes slots.",
    mend: "Set the keys that the message names to what the engine was started with.",
  },
  prefix_caching_off: {
    meaning: "Every prompt is computed whole there.",
    mend: "Start the engine with prefix caching: vLLM without `--no-enable-prefix-caching`, SGLang without `--disable-radix-cache`.",
  },
  index_approximate: {
    meaning: "What engines cache is inferred from own traffic: evictions, other routers and restarts are not seen.",
    mend: "Let engines publish KV events, and set `models.<name>.tokenizer`: docs/kv-events.md. It works without, less exactly.",
  },
  index_distrusted: {
    meaning: "The engine finds far fewer cached tokens than its traffic should have left; predicted hits count less.",
    mend: "Look whether its cache is cleared, or much smaller than `kvCapacityTokens`; KV events would tell.",
  },
  index_full: {
    meaning: "There was no room for all that engines say they hold: this one is followed no more.",
    mend: "Run fewer engines behind each router.",
  },
  events_gap: {
    meaning: "KV events were lost. What the engine holds is not known exactly until it has told all anew.",
    mend: "Give vLLM's `--kv-events-config` a `replay_endpoint`, and more `buffer_steps` if it has one.",
  },
  block_size_mismatch: {
    meaning: "Blocks of this engine cannot be compared with those of its pool; its hits are inferred.",
    mend: "Start all engines of a model with the same `--block-size`.",
  },
  cache_prediction_off: {
    meaning: "Prompts known by their own tokens find other hits than KV events promise.",
    mend: "`kvasir doctor -c FILE`: most likely tokenizer, chat template or block size differ from the engine's.",
  },
  replica_limit_reached: {
    meaning: "Engines were left out.",
    mend: "Raise `discovery.maxEngines`.",
  },
  source_failed: {
    meaning: "A source of engines (file, DNS) cannot be read. The engines that it named last stay.",
    mend: "Mend the file or the name server; it is read again by itself.",
  },
  gateway_open: {
    meaning: "No client keys are configured, and the gateway listens beyond this machine.",
    mend: "`kvasir key create`, and put the hash under `keys`; or set `listen.host` to 127.0.0.1.",
  },
  config_refused: {
    meaning: "The configuration file was changed and cannot be used. The old configuration stays in use.",
    mend: "Mend the lines that the message names; the file is read again by itself.",
  },
  restart_needed: {
    meaning: "The configuration was taken over, except for keys that only a start reads.",
    mend: "Restart the router when it suits.",
  },
} as const satisfies Record<string, ConditionAdvice>;
