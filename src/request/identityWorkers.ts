import { RouterError } from "#src/errors/routerError.ts";
import { bodyTooLarge } from "#src/errors/shared.ts";
import { copyInSlices } from "./copyInSlices.ts";
import { identify, type IdentifyOptions, unhashable } from "./identify.ts";
import type { Identity } from "./identity.ts";
import type { RequestHead } from "./identityTask.ts";
import { DEFAULT_LIMITS, readRequest, type RequestLimits } from "./readRequest.ts";
import type { RequestShape } from "./requestShape.ts";
import { poolFull, ThreadPool } from "./threadPool.ts";

export interface IdentityWorkersOptions {
  /** Bodies up to this size are read at once, on the calling thread (about 0.4 ms per MiB). */
  readonly inlineBytes?: number;
  readonly threads?: number;
  readonly maxQueuedTasks?: number;
  readonly maxQueuedBytes?: number;
}

const MIB = 1024 * 1024;

interface LargeBody {
  readonly head: RequestHead;
  readonly bytes: SharedArrayBuffer;
}

/**
 * Reads and identifies requests; large ones on worker threads, so that the event loop never waits for one. A thread
 * works on a copy in shared memory, made slice by slice: the caller's body stays whole whatever happens to the thread.
 */
export class IdentityWorkers {
  readonly #inlineBytes: number;
  readonly #pool: ThreadPool;
  /** Large requests between their reading and their identity. */
  readonly #large = new WeakMap<RequestShape, LargeBody>();

  constructor(options: IdentityWorkersOptions = {}) {
    this.#inlineBytes = options.inlineBytes ?? MIB / 2;
    this.#pool = new ThreadPool({
      threads: options.threads ?? 1,
      maxQueuedTasks: options.maxQueuedTasks ?? 64,
      maxQueuedBytes: options.maxQueuedBytes ?? 256 * MIB,
      // The largest plan there can be (MAX_PLAN_STEPS) takes about 200.
      maxHeapMib: 512,
    });
  }

  /**
   * `readRequest`, a promise only for large bodies. The shape of a large request has no prompt; it has to go to
   * `identify` of the same object.
   *
   * @throws {RouterError} like `readRequest`; for large bodies also (by rejection) `queue_full` and `internal`
   */
  read(
    method: string,
    target: string,
    contentType: string,
    body: Buffer,
    limits: RequestLimits = DEFAULT_LIMITS,
  ): RequestShape | Promise<RequestShape> {
    if (body.length <= this.#inlineBytes) return readRequest(method, target, contentType, body, limits);
    if (body.length > limits.maxBodyBytes) throw bodyTooLarge(limits.maxBodyBytes);
    return this.#readLarge({ method, target, contentType, limits }, body);
  }

  /** `identify`, a promise only for what `read` read on a thread. It never rejects: at worst there is no identity. */
  identify(shape: RequestShape, body: Buffer, options: IdentifyOptions): Identity | Promise<Identity> {
    const large = this.#large.get(shape);
    if (large === undefined) return identify(shape, body, options);
    this.#large.delete(shape);
    return this.#identifyLarge(large, shape, options);
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #readLarge(head: RequestHead, body: Buffer): Promise<RequestShape> {
    // Asked before the copy too: a flood of large bodies must not first double its memory.
    if (!this.#pool.hasRoom(body.length)) throw poolFull();
    const bytes = await shared(body);
    const answer = await this.#pool.run({ head, bytes, options: null });
    if (answer.kind === "refused") throw new RouterError(answer.code, answer.message, answer.options);
    if (answer.kind !== "shape") throw new TypeError(`a thread asked for a shape answered ${answer.kind}`);
    this.#large.set(answer.shape, { head, bytes });
    return answer.shape;
  }

  async #identifyLarge({ head, bytes }: LargeBody, shape: RequestShape, options: IdentifyOptions): Promise<Identity> {
    try {
      const answer = await this.#pool.run({ head, bytes, options });
      if (answer.kind === "identity") return answer.identity;
    } catch {
      // Counted by its reason: a request without identity is still routed, by load.
    }
    return unhashable("overloaded", shape, bytes.byteLength, options);
  }
}

async function shared(body: Buffer): Promise<SharedArrayBuffer> {
  const bytes = new SharedArrayBuffer(body.length);
  await copyInSlices(body, Buffer.from(bytes));
  return bytes;
}
