import type { CounterFamily, CounterSeries } from "./counterFamily.ts";
import type { HistogramFamily, HistogramSeries } from "./histogramFamily.ts";

/** The families that have a series per model. */
export interface ModelFamilies {
  readonly timeToFirstToken: HistogramFamily;
  readonly interTokenLatency: HistogramFamily;
  readonly queueTime: HistogramFamily;
  readonly e2eLatency: HistogramFamily;
  readonly routerTime: HistogramFamily;
  readonly requestPromptTokens: HistogramFamily;
  readonly requestGenerationTokens: HistogramFamily;
  readonly promptTokens: CounterFamily;
  readonly generationTokens: CounterFamily;
  readonly cachedTokensPredicted: CounterFamily;
  readonly cachedTokensReported: CounterFamily;
  readonly cachedTokensError: CounterFamily;
  readonly requests: CounterFamily;
  readonly shed: CounterFamily;
}

/** The series of one model, resolved once. Times in milliseconds. */
export class ModelMetrics {
  readonly timeToFirstToken: HistogramSeries;
  /** Observed for every streamed event: nothing but a search among 21 bounds and two additions. */
  readonly interTokenLatency: HistogramSeries;
  readonly e2eLatency: HistogramSeries;
  readonly routerTime: HistogramSeries;
  readonly #model: string;
  readonly #families: ModelFamilies;
  readonly #requestPromptTokens: HistogramSeries;
  readonly #requestGenerationTokens: HistogramSeries;
  readonly promptTokens: CounterSeries;
  readonly generationTokens: CounterSeries;
  readonly #cachedPredicted: CounterSeries;
  readonly cachedReported: CounterSeries;
  readonly #cachedError: CounterSeries;
  readonly #queueTime = new Map<string, HistogramSeries>();
  readonly #answered = new Map<number, CounterSeries>();

  constructor(model: string, families: ModelFamilies) {
    this.#model = model;
    this.#families = families;
    this.timeToFirstToken = families.timeToFirstToken.with(model);
    this.interTokenLatency = families.interTokenLatency.with(model);
    this.e2eLatency = families.e2eLatency.with(model);
    this.routerTime = families.routerTime.with(model);
    this.#requestPromptTokens = families.requestPromptTokens.with(model);
    this.#requestGenerationTokens = families.requestGenerationTokens.with(model);
    this.promptTokens = families.promptTokens.with(model);
    this.generationTokens = families.generationTokens.with(model);
    this.#cachedPredicted = families.cachedTokensPredicted.with(model);
    this.cachedReported = families.cachedTokensReported.with(model);
    this.#cachedError = families.cachedTokensError.with(model);
  }

  /** Time in the router's queue, zero included. Class names come from the configuration. */
  queued(className: string, waitedMs: number): void {
    let series = this.#queueTime.get(className);
    if (series === undefined)
      this.#queueTime.set(className, (series = this.#families.queueTime.with(this.#model, className)));
    series.observe(waitedMs);
  }

  /** Refused for the load there is, by class and why. */
  shed(className: string, code: string): void {
    this.#families.shed.with(this.#model, className, code).add();
  }

  /** `code` null: the engine's answer was passed on. Status 499: the client went away. */
  request(status: number, code: string | null): void {
    if (code !== null) {
      this.#families.requests.with(this.#model, String(status), code).add();
      return;
    }
    let series = this.#answered.get(status);
    if (series === undefined)
      this.#answered.set(status, (series = this.#families.requests.with(this.#model, String(status), "")));
    series.add();
  }

  /** Null: not known, which is not zero. */
  tokens(promptTokens: number | null, outputTokens: number | null): void {
    if (promptTokens !== null) {
      this.promptTokens.add(promptTokens);
      this.#requestPromptTokens.observe(promptTokens);
    }
    if (outputTokens !== null) {
      this.generationTokens.add(outputTokens);
      this.#requestGenerationTokens.observe(outputTokens);
    }
  }

  /** Predicted by the decision, and what the answer reported (null: nothing). */
  cachedTokens(predicted: number, reported: number | null): void {
    this.#cachedPredicted.add(predicted);
    if (reported === null) return;
    this.cachedReported.add(reported);
    this.#cachedError.add(Math.abs(predicted - reported));
  }
}
