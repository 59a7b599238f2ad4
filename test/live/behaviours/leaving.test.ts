// Behaviour 16: a router that is told to leave, as a process of its own.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { chunk, LAST_CHUNK, STREAM_HEAD, type Received } from "../dispatchRig.ts";
import { until } from "../gatewaySetup.ts";
import { chatBytes, Client } from "./client.ts";
import { DONE, token, Worker } from "./worker.ts";

const KVASIR = join(import.meta.dirname, "../../../bin/kvasir.mjs");

/** `kvasir serve` with this configuration, ready to take requests. */
async function serve(yaml: string) {
  const folder = await mkdtemp(join(tmpdir(), "kvasir-leaving-"));
  const path = join(folder, "kvasir.yaml");
  await writeFile(path, yaml);
  const child = spawn(process.execPath, [KVASIR, "serve", "-c", path], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const exit = once(child, "close").then(([code]) => code as number | null);
  let urls: RegExpExecArray;
  try {
    urls = await until("it listens", () => /listens on (\S+), admin on (\S+)/.exec(output));
    await until("it is ready", async () => (await fetch(`${urls[1]}/readyz`)).ok);
  } catch (caught) {
    child.kill("SIGKILL");
    throw caught;
  }
  const [, url = "", adminUrl = ""] = urls;
  return {
    child,
    url,
    adminUrl,
    exit,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exit;
      await rm(folder, { recursive: true });
    },
  };
}

describe("16. SIGTERM", () => {
  it("not ready first; those that wait get a retryable 503; streams finish; then it exits", async () => {
    const held: Received[] = [];
    await using worker = await Worker.start((request) => {
      held.push(request);
      request.socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(token())]));
    });
    await using router = await serve(
      `engines: [{ url: "${worker.url}", maxRunningRequests: 2 }]\nlisten: { host: 127.0.0.1, port: 0 }\n` +
        `admin: { port: 0 }\nlimits: { drainDelayMs: 700, drainGraceMs: 20000 }\n`,
    );
    const streams = [1, 2].map(() => new Client(router.url, chatBytes({ stream: true, max_tokens: 500 })));
    await until("two stream", () => streams.every(({ text }) => text.includes("word")));
    const waiting = [1, 2, 3].map(() => new Client(router.url, chatBytes()));
    await until("three wait", async () => {
      const status = (await (await fetch(`${router.adminUrl}/status`)).json()) as { queue: { requests: number } };
      return status.queue.requests === 3;
    });

    router.child.kill("SIGTERM");
    await until("it says that it is not ready", async () => (await fetch(`${router.adminUrl}/readyz`)).status === 503);
    // Balancers need a moment to notice; until then it still takes what they send, clients' own probes included.
    assert.equal((await fetch(`${router.url}/readyz`)).status, 503);
    assert.equal((await fetch(`${router.url}/v1/models`)).status, 200);
    assert.deepEqual(
      waiting.map(({ status }) => status),
      [0, 0, 0],
    );
    const late = new Client(router.url, chatBytes());

    for (const client of [...waiting, late]) {
      await client.sees((text) => text.includes("}}"));
      assert.match(client.text, /^HTTP\/1\.1 503 .*^x-should-retry: true\r$.*"code":"shutting_down"/ms);
      assert.match(client.text, /^retry-after: \d+\r$/im);
      await client.closed;
    }
    await until("nobody can connect any more", () =>
      fetch(`${router.url}/readyz`).then(
        () => false,
        () => true,
      ),
    );
    assert.equal(router.child.exitCode, null);
    for (const { socket } of held) {
      for (const bytes of [chunk(token("last")), chunk(DONE), Buffer.from(LAST_CHUNK)]) socket.write(bytes);
    }
    for (const client of streams) {
      await client.closed;
      assert.match(client.text, /last.*data: \[DONE\]\n\n\r\n0\r\n\r\n$/s);
    }
    assert.equal(await router.exit, 0);
    assert.equal(held.length, 2, "none of those that waited reached the engine");
  });

  it("ends what outlives the grace time: an error event, no [DONE], the engine is told", async () => {
    let aborted = 0;
    await using worker = await Worker.start(({ socket }) => {
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(token())]));
      socket.once("close", () => aborted++);
    });
    await using router = await serve(
      `engines: ["${worker.url}"]\nlisten: { host: 127.0.0.1, port: 0 }\nadmin: { port: 0 }\nlimits: { drainGraceMs: 300 }\n`,
    );
    const streams = [1, 2, 3].map(() => new Client(router.url, chatBytes({ stream: true })));
    await until("they stream", () => streams.every(({ text }) => text.includes("word")));
    router.child.kill("SIGTERM");
    for (const client of streams) {
      await client.closed;
      assert.match(client.text, /"code":"shutting_down"[^\n]*\n\n\r\n0\r\n\r\n$/);
      assert.ok(!client.text.includes("[DONE]"));
    }
    assert.equal(await router.exit, 0);
    await until("the engine knows", () => aborted === 3);
  });
});
