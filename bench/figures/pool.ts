import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Job, Measures } from "./measure.ts";

/** Runs jobs on a few threads, each run once however often it is asked for. */
export class Pool {
  readonly #threads: number;
  readonly #known = new Map<string, Measures>();

  constructor(threads: number) {
    this.#threads = threads;
  }

  get(job: Job): Measures {
    return this.#known.get(JSON.stringify(job))!;
  }

  /** `onDone` is called after each. */
  async run(jobs: readonly Job[], onDone: (done: number, of: number, job: Job) => void): Promise<void> {
    const open = [...new Map(jobs.map((job) => [JSON.stringify(job), job])).entries()].filter(
      ([key]) => !this.#known.has(key),
    );
    const total = open.length;
    let done = 0;
    const thread = async (): Promise<void> => {
      const worker = new Worker(new URL("worker.ts", import.meta.url));
      for (let next = open.shift(); next !== undefined; next = open.shift()) {
        worker.postMessage(next[1], []);
        // An error of the worker rejects.
        const [measures] = (await once(worker, "message")) as [Measures];
        this.#known.set(next[0], measures);
        onDone(++done, total, next[1]);
      }
      await worker.terminate();
    };
    await Promise.all(Array.from({ length: Math.min(this.#threads, total) }, thread));
  }
}
