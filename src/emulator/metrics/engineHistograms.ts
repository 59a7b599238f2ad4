import type { SequenceSink } from "../engineLoop.ts";
import type { StepOutcome } from "../scheduler/engineCore.ts";
import type { Sequence } from "../scheduler/sequence.ts";
import { Histogram } from "./histogram.ts";

const TTFT_BOUNDS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const GAP_BOUNDS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const REQUEST_BOUNDS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const TOKEN_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];
const STEP_BOUNDS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384];
const PREEMPTION_BOUNDS = [0, 1, 2, 3, 4, 5, 6, 8, 10];

/** vLLM's histograms of one data-parallel rank, under their own names without the prefix. Seconds are real ones. */
export class EngineHistograms {
  readonly byName = {
    request_prompt_tokens: new Histogram(TOKEN_BOUNDS),
    request_generation_tokens: new Histogram(TOKEN_BOUNDS),
    iteration_tokens_total: new Histogram(STEP_BOUNDS),
    request_params_max_tokens: new Histogram(TOKEN_BOUNDS),
    request_params_n: new Histogram([1, 2, 5, 10, 20]),
    time_to_first_token_seconds: new Histogram(TTFT_BOUNDS),
    inter_token_latency_seconds: new Histogram(GAP_BOUNDS),
    request_time_per_output_token_seconds: new Histogram(GAP_BOUNDS),
    e2e_request_latency_seconds: new Histogram(REQUEST_BOUNDS),
    request_queue_time_seconds: new Histogram(REQUEST_BOUNDS),
    request_inference_time_seconds: new Histogram(REQUEST_BOUNDS),
    request_prefill_time_seconds: new Histogram(REQUEST_BOUNDS),
    request_decode_time_seconds: new Histogram(REQUEST_BOUNDS),
    request_num_preemptions: new Histogram(PREEMPTION_BOUNDS),
    request_prefill_kv_computed_tokens: new Histogram(TOKEN_BOUNDS),
  };
  readonly #secondsPerModelledMs: number;

  constructor(timeScale: number) {
    this.#secondsPerModelledMs = timeScale / 1000;
  }

  observe(outcome: StepOutcome<SequenceSink>): void {
    const { byName } = this;
    byName.iteration_tokens_total.observe(outcome.tokens);
    for (const sequence of outcome.emitted) {
      if (sequence.generatedTokens > 1)
        byName.inter_token_latency_seconds.observe(sequence.lastGapMs * this.#secondsPerModelledMs);
      else if (sequence.firstTokenMs !== null)
        byName.time_to_first_token_seconds.observe(this.#between(sequence.arrivedMs, sequence.firstTokenMs));
    }
    for (const sequence of outcome.finished) this.#observeFinished(sequence);
  }

  #observeFinished(sequence: Sequence<SequenceSink>): void {
    const { byName } = this;
    const finishedMs = sequence.finishedMs ?? 0;
    const scheduledMs = sequence.firstScheduledMs ?? finishedMs;
    const firstTokenMs = sequence.firstTokenMs ?? finishedMs;
    byName.request_prompt_tokens.observe(sequence.promptTokens);
    byName.request_generation_tokens.observe(sequence.generatedTokens);
    byName.request_params_max_tokens.observe(sequence.outputTokens);
    byName.request_params_n.observe(1);
    byName.e2e_request_latency_seconds.observe(this.#between(sequence.arrivedMs, finishedMs));
    byName.request_queue_time_seconds.observe(this.#between(sequence.arrivedMs, scheduledMs));
    byName.request_inference_time_seconds.observe(this.#between(scheduledMs, finishedMs));
    byName.request_prefill_time_seconds.observe(this.#between(scheduledMs, firstTokenMs));
    byName.request_decode_time_seconds.observe(this.#between(firstTokenMs, finishedMs));
    byName.request_num_preemptions.observe(sequence.preemptions);
    byName.request_prefill_kv_computed_tokens.observe(sequence.promptTokens - sequence.cachedTokens);
    if (sequence.generatedTokens > 1) {
      const perToken = this.#between(firstTokenMs, finishedMs) / (sequence.generatedTokens - 1);
      byName.request_time_per_output_token_seconds.observe(perToken);
    }
  }

  #between(fromMs: number, toMs: number): number {
    return (toMs - fromMs) * this.#secondsPerModelledMs;
  }
}
