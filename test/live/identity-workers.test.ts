import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, it } from "node:test";
import type { Worker } from "node:worker_threads";
import { RouterError } from "#src/errors/routerError.ts";
import { identify, type IdentifyOptions } from "#src/request/identify.ts";
import { IdentityWorkers, type IdentityWorkersOptions } from "#src/request/identityWorkers.ts";
import { readRequest } from "#src/request/readRequest.ts";
import { ThreadPool } from "#src/request/threadPool.ts";

const CHAT = "/v1/chat/completions";
const TYPE = "application/json";
const OPTIONS: IdentifyOptions = { bytesPerToken: 4, adapter: "x", salt: "s" };
const MIB = 1024 * 1024;

function chatOf(bytes: number): Buffer {
  const line = 'He said \\"no\\" and\\nleft. — ü ';
  const content = line.repeat(Math.ceil(bytes / Buffer.byteLength(line)));
  return Buffer.from(`{"messages":[{"role":"user","content":"${content}"}],"rid":"x","model":"a","stream":true}`);
}

function workersFor(options: IdentityWorkersOptions = {}): IdentityWorkers {
  const workers = new IdentityWorkers(options);
  after(() => workers.close());
  return workers;
}

async function rejectsWith(promise: unknown, code: string): Promise<RouterError> {
  let caught: unknown = null;
  await Promise.resolve(promise).catch((error: unknown) => (caught = error));
  assert.ok(caught instanceof RouterError, `expected a rejection with ${code}`);
  assert.equal(caught.code, code);
  return caught;
}

describe("IdentityWorkers", () => {
  it("reads small bodies at once and large ones elsewhere, with the same result", async () => {
    const workers = workersFor();
    for (const [bytes, inline] of [
      [MIB / 4, true],
      [MIB, false],
      [5 * MIB, false],
    ] as const) {
      const body = chatOf(bytes);
      const copy = Buffer.from(body);
      const expected = readRequest("POST", CHAT, TYPE, body);
      const reading = workers.read("POST", CHAT, TYPE, body);
      assert.equal(reading instanceof Promise, !inline);
      const shape = await reading;
      assert.deepEqual({ ...shape, prompt: null }, { ...expected, prompt: null });
      const hashing = workers.identify(shape, body, OPTIONS);
      assert.equal(hashing instanceof Promise, !inline);
      assert.deepEqual(await hashing, identify(expected, body, OPTIONS));
      assert.ok(body.equals(copy), "the caller's body stays as it was");
    }
  });

  it("lets the event loop go on while large bodies are hashed", async () => {
    const workers = workersFor({ threads: 1 });
    const server = createServer((_, response) => response.end("pong")).listen(0, "127.0.0.1");
    after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const order: string[] = [];
    const hashed = Array.from({ length: 4 }, async (_, index) => {
      const body = chatOf(20 * MIB);
      const shape = await workers.read("POST", CHAT, TYPE, body);
      const identity = await workers.identify(shape, body, OPTIONS);
      assert.ok(identity.hashes.length > 20_000);
      order.push(`hashed ${index}`);
    });
    const immediate = new Promise<void>((resolve) => {
      setImmediate(() => {
        order.push("immediate");
        resolve();
      });
    });
    const ping = new Promise<void>((resolve, reject) => {
      get({ port, host: "127.0.0.1", path: "/" }, (response) => {
        response.resume().on("end", () => {
          order.push("ping");
          resolve();
        });
      }).on("error", reject);
    });
    await Promise.all([...hashed, immediate, ping]);
    assert.equal(order[0], "immediate");
    assert.ok(order.indexOf("ping") < order.indexOf("hashed 3"), order.join(", "));
  });

  it("refuses on a thread what it refuses inline, with the same words", async () => {
    const workers = workersFor();
    const broken = Buffer.from(`{"model":"a","x":"${"y".repeat(MIB)}"`);
    const refusal = await rejectsWith(workers.read("POST", CHAT, TYPE, broken), "invalid_json");
    assert.throws(
      () => readRequest("POST", CHAT, TYPE, broken),
      (inline: RouterError) => {
        assert.equal(refusal.message, inline.message);
        assert.deepEqual(
          [refusal.fault, refusal.httpStatus, refusal.retryable, refusal.param],
          [inline.fault, inline.httpStatus, inline.retryable, inline.param],
        );
        return true;
      },
    );
    const misnamed = Buffer.from(`{"model":7,"x":"${"y".repeat(MIB)}"}`);
    assert.equal((await rejectsWith(workers.read("POST", CHAT, TYPE, misnamed), "missing_model")).param, "model");
    assert.throws(() => workers.read("POST", CHAT, TYPE, broken, { maxBodyBytes: MIB }), { code: "body_too_large" });
    // The thread survived all of it.
    const body = chatOf(MIB);
    assert.equal((await workers.read("POST", CHAT, TYPE, body)).model, "a");
  });

  it("bounds what waits: more is refused as busy, and what was taken is finished", async () => {
    const workers = workersFor({ threads: 1, maxQueuedTasks: 2 });
    const body = chatOf(MIB);
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => Promise.resolve(workers.read("POST", CHAT, TYPE, body))),
    );
    const refused = results.filter((result) => result.status === "rejected");
    assert.equal(refused.length, 5);
    for (const { reason } of refused) {
      assert.ok(reason instanceof RouterError);
      assert.deepEqual([reason.code, reason.retryable, reason.retryAfterMs], ["queue_full", true, 1000]);
    }
    const byBytes = workersFor({ threads: 1, maxQueuedBytes: 2.5 * MIB });
    const sizes = await Promise.allSettled(
      Array.from({ length: 6 }, () => Promise.resolve(byBytes.read("POST", CHAT, TYPE, body))),
    );
    assert.equal(sizes.filter(({ status }) => status === "rejected").length, 3);
  });

  it("routes without identity what cannot be hashed now", async () => {
    const workers = new IdentityWorkers({ threads: 1 });
    const body = chatOf(MIB);
    const shape = await workers.read("POST", CHAT, TYPE, body);
    await workers.close();
    const identity = await workers.identify(shape, body, OPTIONS);
    assert.equal(identity.unhashable, "overloaded");
    assert.equal(identity.hashes.length, 0);
    assert.equal(identity.promptTokens, Math.ceil(body.length / 4));
    await rejectsWith(workers.read("POST", CHAT, TYPE, body), "queue_full");
  });
});

describe("ThreadPool", () => {
  const limits = { threads: 1, maxQueuedTasks: 8, maxQueuedBytes: 64 * MIB, maxHeapMib: 512 };
  const head = { method: "POST", target: CHAT, contentType: TYPE, limits: { maxBodyBytes: 64 * MIB } };
  const bytes = new SharedArrayBuffer(16);
  Buffer.from(bytes).write('{"model":"abc"}\n');

  it("replaces a thread that died, and only its task fails", async () => {
    const workers: Worker[] = [];
    const onWorker = (worker: Worker): void => void workers.push(worker);
    process.on("worker", onWorker);
    after(() => process.off("worker", onWorker));
    const pool = new ThreadPool(limits);
    after(() => pool.close());
    const first = await pool.run({ head, bytes, options: null }).then(() => "fulfilled");
    const messages = Buffer.from(`{"model":"a","messages":[${"{},".repeat(900_000)}{}]}`);
    const large = new SharedArrayBuffer(messages.length);
    messages.copy(Buffer.from(large));
    const fatal = { head, bytes: large, options: null };
    const tasks = [pool.run(fatal), pool.run({ head, bytes, options: null })];
    await workers[0]!.terminate();
    const [second, third] = await Promise.allSettled(tasks);
    assert.equal(first, "fulfilled");
    assert.equal(third!.status, "fulfilled");
    assert.equal(second!.status, "rejected");
    assert.ok(second!.status === "rejected" && second!.reason instanceof RouterError);
    assert.deepEqual([second!.reason.code, second!.reason.retryable], ["internal", true]);
    assert.equal(pool.queuedTasks, 0);
  });

  it("rejects what runs and what waits when it is closed", async () => {
    const pool = new ThreadPool(limits);
    const tasks = [1, 2, 3].map(() => pool.run({ head, bytes, options: null }));
    const settled = Promise.allSettled(tasks);
    await pool.close();
    const results = await settled;
    assert.ok(results.every(({ status }) => status === "rejected"));
    assert.equal(pool.hasRoom(1), false);
  });
});
