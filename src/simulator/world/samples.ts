/** The state of all engines and queues, looked at every so often. */
export class Samples {
  readonly engines: number;
  readonly atMs: number[] = [];
  /** Requests at each engine, engine by engine within each sample. */
  readonly requests: number[] = [];
  /** Share of KV memory held by running sequences, likewise. */
  readonly kvUsage: number[] = [];
  /** Requests that wait in the routers, together. */
  readonly waiting: number[] = [];

  constructor(engines: number) {
    this.engines = engines;
  }
}
