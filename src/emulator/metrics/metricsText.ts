import type { ResolvedOptions } from "../engineOptions.ts";
import type { Faults } from "../faults.ts";
import type { Incarnation, Rank } from "../incarnation.ts";
import { pythonFloat } from "../pythonFloat.ts";
import type { Histogram } from "./histogram.ts";

type Labels = Readonly<Record<string, string>>;

/** vLLM's `/metrics`. Names in `missingMetrics` (without suffix) are left out. */
export function metricsText(
  engine: Incarnation,
  options: ResolvedOptions,
  { missingMetrics, clockSkewMs, asleep }: Faults,
): string {
  const page = new MetricsPage(new Set(missingMetrics));
  page.family("process_start_time_seconds", "gauge", [[{}, engine.startedAtSeconds + clockSkewMs / 1000]]);
  page.family("process_resident_memory_bytes", "gauge", [[{}, process.memoryUsage.rss()]]);
  const perRank = (value: (rank: Rank) => number, extra: Labels = {}): [Labels, number][] =>
    engine.ranks.map((rank, index) => [{ engine: String(index), model_name: options.model, ...extra }, value(rank)]);

  page.family(
    "vllm:num_requests_running",
    "gauge",
    perRank(({ loop }) => loop.core.running.length),
  );
  page.family(
    "vllm:num_requests_waiting",
    "gauge",
    perRank(({ loop }) => loop.core.waitingCount),
  );
  page.family("vllm:num_requests_waiting_by_reason", "gauge", [
    ...perRank(({ loop }) => loop.core.waitingCount, { reason: "capacity" }),
    ...perRank(() => 0, { reason: "deferred" }),
  ]);
  page.family("vllm:engine_sleep_state", "gauge", [
    ...perRank(() => (asleep ? 0 : 1), { sleep_state: "awake" }),
    ...perRank(() => (asleep ? 1 : 0), { sleep_state: "weights_offloaded" }),
    ...perRank(() => 0, { sleep_state: "discard_all" }),
  ]);
  page.family(
    "vllm:kv_cache_usage_perc",
    "gauge",
    perRank(({ loop }) => loop.core.kvUsage),
  );
  page.family(
    "vllm:prefix_cache_queries",
    "counter",
    perRank(({ loop }) => loop.core.counters.prefixQueriedTokens),
  );
  page.family(
    "vllm:prefix_cache_hits",
    "counter",
    perRank(({ loop }) => loop.core.counters.prefixHitTokens),
  );
  page.family(
    "vllm:external_prefix_cache_queries",
    "counter",
    perRank(({ loop }) => loop.core.counters.hostQueriedTokens),
  );
  const restored = ({ loop }: Rank): number => loop.core.counters.hostHitTokens;
  page.family("vllm:external_prefix_cache_hits", "counter", perRank(restored));
  for (const name of ["mm_cache_queries", "mm_cache_hits"])
    page.family(
      `vllm:${name}`,
      "counter",
      perRank(() => 0),
    );
  page.family(
    "vllm:num_preemptions",
    "counter",
    perRank(({ loop }) => loop.core.counters.preemptions),
  );
  page.family(
    "vllm:prompt_tokens",
    "counter",
    perRank(({ loop }) => loop.core.counters.promptTokens),
  );
  const hits = ({ loop }: Rank): number => loop.core.counters.prefixHitTokens;
  const cached = (rank: Rank): number => hits(rank) + restored(rank);
  page.family("vllm:prompt_tokens_by_source", "counter", [
    ...perRank((rank) => Math.max(0, rank.loop.core.counters.promptTokens - cached(rank)), { source: "local_compute" }),
    ...perRank(hits, { source: "local_cache_hit" }),
    ...perRank(restored, { source: "external_kv_transfer" }),
  ]);
  page.family("vllm:prompt_tokens_cached", "counter", perRank(cached));
  page.family("vllm:prompt_tokens_cached_by_source", "counter", [
    ...perRank(hits, { source: "device" }),
    ...perRank(restored, { source: "host" }),
    ...["p2p", "disk", "external_unspecified"].flatMap((source) => perRank(() => 0, { source })),
  ]);
  page.family(
    "vllm:generation_tokens",
    "counter",
    perRank(({ loop }) => loop.core.counters.generatedTokens),
  );
  page.family("vllm:request_success", "counter", successes(engine, options));
  page.family("vllm:admission_rejections", "counter", [
    [{ model_name: options.model, reason: "max_num_queued_reqs" }, engine.rejected],
    [{ model_name: options.model, reason: "max_num_queued_tokens" }, 0],
  ]);
  addHistograms(page, engine, options);
  if (engine.adapters.size > 0) page.family("vllm:lora_requests_info", "gauge", [adapterSample(engine, options)]);
  page.family("vllm:cache_config_info", "gauge", cacheConfig(engine, options));
  page.family(
    "http_requests",
    "counter",
    [...engine.httpRequests].map(([key, count]) => {
      const [method = "", handler = "", status = ""] = key.split(" ");
      return [{ handler, method, status }, count];
    }),
  );
  return page.text;
}

function successes(engine: Incarnation, { model }: ResolvedOptions): [Labels, number][] {
  const count = (finished_reason: string, value: number): [Labels, number] => [
    { engine: "0", finished_reason, model_name: model },
    value,
  ];
  // A real engine does not count aborts here, although it has the series.
  const { stop, length } = engine.finishedByReason;
  return [count("stop", stop), count("length", length), count("abort", 0), count("error", 0), count("repetition", 0)];
}

function addHistograms(page: MetricsPage, engine: Incarnation, { model }: ResolvedOptions): void {
  const names = Object.keys(engine.ranks[0]?.histograms.byName ?? {}) as (keyof Rank["histograms"]["byName"])[];
  for (const name of names) {
    page.histogram(
      `vllm:${name}`,
      engine.ranks.map(({ histograms }, index) => [
        { engine: String(index), model_name: model },
        histograms.byName[name],
      ]),
    );
  }
}

/** The value is the time when the label set was true. */
function adapterSample(engine: Incarnation, options: ResolvedOptions): [Labels, number] {
  const running = new Set<string>();
  const waiting = new Set<string>();
  for (const { loop } of engine.ranks) {
    for (const { adapter } of loop.core.running) if (adapter !== null) running.add(adapter);
    for (const { adapter } of loop.core.waiting()) if (adapter !== null) waiting.add(adapter);
  }
  return [
    {
      max_lora: String(options.maxResidentAdapters),
      running_lora_adapters: [...running].join(","),
      waiting_lora_adapters: [...waiting].join(","),
    },
    Date.now() / 1000,
  ];
}

function cacheConfig(engine: Incarnation, options: ResolvedOptions): [Labels, number][] {
  return engine.ranks.map((_, index) => [
    {
      block_size: String(options.blockTokens),
      cache_dtype: "auto",
      enable_prefix_caching: options.prefixCaching ? "True" : "False",
      engine: String(index),
      gpu_memory_utilization: "0.9",
      kv_cache_size_tokens: String(options.kvTokens),
      num_cpu_blocks: "None",
      num_gpu_blocks: String(options.kvTokens / options.blockTokens),
      num_gpu_blocks_override: "None",
      prefix_caching_hash_algo: options.hashAlgorithm,
      sliding_window: "None",
    },
    1,
  ]);
}

/** Writes families in Prometheus' text format as Python's client does: counters gain `_total`. */
class MetricsPage {
  readonly #missing: ReadonlySet<string>;
  readonly #lines: string[] = [];

  constructor(missing: ReadonlySet<string>) {
    this.#missing = missing;
  }

  get text(): string {
    return `${this.#lines.join("\n")}\n`;
  }

  family(name: string, type: "gauge" | "counter", samples: readonly (readonly [Labels, number])[]): void {
    if (this.#missing.has(name)) return;
    const full = type === "counter" ? `${name}_total` : name;
    this.#lines.push(`# HELP ${full} ${name}.`, `# TYPE ${full} ${type}`);
    for (const [labels, value] of samples) this.#sample(full, labels, value);
  }

  histogram(name: string, series: readonly (readonly [Labels, Histogram])[]): void {
    if (this.#missing.has(name)) return;
    this.#lines.push(`# HELP ${name} ${name}.`, `# TYPE ${name} histogram`);
    for (const [labels, histogram] of series) {
      const cumulative = histogram.cumulative();
      histogram.bounds.forEach((bound, at) =>
        this.#sample(`${name}_bucket`, { ...labels, le: pythonFloat(bound) }, cumulative[at] ?? 0),
      );
      this.#sample(`${name}_bucket`, { ...labels, le: "+Inf" }, histogram.count);
      this.#sample(`${name}_count`, labels, histogram.count);
      this.#sample(`${name}_sum`, labels, histogram.sum);
    }
  }

  #sample(name: string, labels: Labels, value: number): void {
    const inside = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
    this.#lines.push(`${name}${inside.length === 0 ? "" : `{${inside.join(",")}}`} ${pythonFloat(value)}`);
  }
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
