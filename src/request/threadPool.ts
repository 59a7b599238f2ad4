import { Worker } from "node:worker_threads";
import { RouterError } from "#src/errors/routerError.ts";
import type { ThreadAnswer, ThreadTask } from "./identityTask.ts";

interface Job {
  readonly task: ThreadTask;
  readonly settle: (answer: ThreadAnswer) => void;
  readonly fail: (error: RouterError) => void;
}

export interface ThreadPoolLimits {
  readonly threads: number;
  /** Tasks that may wait for a thread, and the bytes of their bodies. */
  readonly maxQueuedTasks: number;
  readonly maxQueuedBytes: number;
  /** Well above what the bounds of a body allow: beyond it a thread dies, and V8 may end the process with it. */
  readonly maxHeapMib: number;
}

const THREAD_FILE = new URL(
  import.meta.url.endsWith(".ts") ? "identityThread.ts" : "identityThread.js",
  import.meta.url,
);

/** A bounded queue before a few worker threads, each with one task at a time. Threads start when they are needed. */
export class ThreadPool {
  readonly #limits: ThreadPoolLimits;
  readonly #idle: Worker[] = [];
  readonly #busy = new Map<Worker, Job>();
  readonly #queue: Job[] = [];
  #queuedBytes = 0;
  #closed = false;

  constructor(limits: ThreadPoolLimits) {
    this.#limits = limits;
  }

  get queuedTasks(): number {
    return this.#queue.length;
  }

  /** Whether `run` would take a task of this size now. */
  hasRoom(bytes: number): boolean {
    if (this.#closed) return false;
    if (this.#busy.size < this.#limits.threads) return true;
    const { maxQueuedTasks, maxQueuedBytes } = this.#limits;
    return this.#queue.length < maxQueuedTasks && this.#queuedBytes + bytes <= maxQueuedBytes;
  }

  /** Rejects with `queue_full` when there is no room, with `internal` when the thread dies over the task. */
  run(task: ThreadTask): Promise<ThreadAnswer> {
    const bytes = task.bytes.byteLength;
    if (!this.hasRoom(bytes)) return Promise.reject(poolFull());
    return new Promise((settle, fail) => {
      this.#queue.push({ task, settle, fail });
      this.#queuedBytes += bytes;
      this.#next();
    });
  }

  /** Stops all threads; what waits or runs is rejected as retryable. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const job of this.#queue.splice(0)) job.fail(threadLost());
    this.#queuedBytes = 0;
    await Promise.all([...this.#idle.splice(0), ...this.#busy.keys()].map((worker) => worker.terminate()));
  }

  #next(): void {
    while (!this.#closed && this.#queue.length > 0 && this.#busy.size < this.#limits.threads) {
      const job = this.#queue.shift()!;
      this.#queuedBytes -= job.task.bytes.byteLength;
      const worker = this.#idle.pop() ?? this.#start();
      this.#busy.set(worker, job);
      // Only a thread at work keeps the process alive.
      worker.ref();
      worker.postMessage(job.task, []);
    }
  }

  #start(): Worker {
    const worker = new Worker(THREAD_FILE, { resourceLimits: { maxOldGenerationSizeMb: this.#limits.maxHeapMib } });
    worker.on("message", (answer: ThreadAnswer) => {
      const job = this.#busy.get(worker);
      this.#busy.delete(worker);
      worker.unref();
      this.#idle.push(worker);
      job?.settle(answer);
      this.#next();
    });
    // An error is always followed by the exit, which cleans up; without a listener it would be thrown.
    worker.on("error", () => {});
    worker.on("exit", () => {
      const job = this.#busy.get(worker);
      this.#busy.delete(worker);
      const place = this.#idle.indexOf(worker);
      if (place >= 0) this.#idle.splice(place, 1);
      job?.fail(threadLost());
      this.#next();
    });
    return worker;
  }
}

export function poolFull(): RouterError {
  return new RouterError("queue_full", "Too many large requests are being read; try again soon.", {
    fault: "router",
    httpStatus: 503,
    retryable: true,
    retryAfterMs: 1000,
  });
}

function threadLost(): RouterError {
  return new RouterError("internal", "The thread that read this request ended before it was done.", {
    fault: "router",
    httpStatus: 500,
    retryable: true,
  });
}
