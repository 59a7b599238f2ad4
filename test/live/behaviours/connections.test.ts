// Behaviours 5 and 6: connections to engines, and framing on both sides.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { bodyOf, chunk, LAST_CHUNK, talk } from "../dispatchRig.ts";
import { chat, FAST, MODEL, setUp } from "../gatewaySetup.ts";
import { metric } from "./books.ts";
import { answer, asked, headerOf, Worker } from "./worker.ts";

const WAYS = {
  /** As uvicorn does: nothing is read any more, and what has arrived unread resets the connection. */
  "at once": (socket: Socket) => socket.destroy(),
  /** Says first that it will send no more, and lets the reset follow. */
  "in two steps": (socket: Socket) => {
    // Node would read on, as no engine does; there is no public way to stop it.
    (socket as unknown as { _handle: { readStop(): void } })._handle.readStop();
    socket.end();
    setImmediate(() => socket.destroy());
  },
};

describe("5. an engine that closes idle connections", { concurrency: true }, () => {
  for (const [way, close] of Object.entries(WAYS)) {
    it(`${way}, at any moment, costs no request, runs no prompt twice and is not blamed`, async () => {
      const random = new SeededRandom(way.length);
      const runs: unknown[] = [];
      await using worker = await Worker.start((request) => {
        runs.push(asked(request)["user"]);
        const { socket } = request;
        socket.write(answer());
        const seen = worker.requests.length;
        setTimeout(() => {
          const idle = !worker.requests.slice(seen).some((later) => later.socket === socket);
          if (idle) close(socket);
        }, random.next() * 4);
      });
      await using setup = await setUp([], { engines: [worker.url], log: { requests: false } }, 1);
      const statuses = new Map<number, number>();
      await Promise.all(
        Array.from({ length: 4 }, async (_, client) => {
          for (let at = 0; at < 60; at++) {
            const response = await chat(setup.url, { user: `${client}-${at}` });
            await response.text();
            statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
            await new Promise((resolve) => setTimeout(resolve, random.next() * 5));
          }
        }),
      );
      assert.deepEqual([...statuses], [[200, 240]]);
      assert.equal(runs.length, 240);
      assert.equal(new Set(runs).size, 240);
      assert.equal(await metric(setup, `kvasir_replica_attempts_total{replica="${worker.id}",outcome="failed"}`), null);
    });
  }

  for (const keepAliveMs of [1000, 5000]) {
    it(`after ${keepAliveMs / 1000} s: requests before, at and after that moment all succeed`, async () => {
      const engine = await startEmulatedEngine({ ...FAST, keepAliveMs });
      try {
        await using setup = await setUp([], { engines: [engine.url] }, 1);
        // The router's own limit is 4 s, so an engine's 5 s never come to pass on a connection of requests.
        for (const pauseMs of [0, 0.99 * keepAliveMs, 1.001 * keepAliveMs]) {
          await new Promise((resolve) => setTimeout(resolve, pauseMs));
          const answers = await Promise.all(Array.from({ length: 8 }, () => chat(setup.url, { max_tokens: 2 })));
          assert.deepEqual(
            answers.map(({ status }) => status),
            Array.from({ length: 8 }, () => 200),
          );
        }
        assert.equal(engine.stats().finished, 24);
      } finally {
        await engine.stop();
      }
    });
  }

  it("after it has read a request is not sent that request again", async () => {
    const runs: unknown[] = [];
    await using worker = await Worker.start((request) => {
      runs.push(asked(request)["user"]);
      if (request.nth === 0) request.socket.write(answer());
      else request.socket.destroy();
    });
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    assert.equal((await chat(setup.url, { user: "first" })).status, 200);
    assert.equal((await chat(setup.url, { user: "second" })).status, 502);
    assert.deepEqual(runs, ["first", "second"]);
  });
});

/** Ways in which an engine may frame the same answer. */
const ENGINE_FRAMINGS: Record<string, (body: string) => string> = {
  sized: (body) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n`,
  "chunked, in two": () => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
  "ended by closing": () => "HTTP/1.1 200 OK\r\n",
  "HTTP/1.0": () => "HTTP/1.0 200 OK\r\n",
};

/** Headers that concern one connection only, in both directions. */
const HOP_BY_HOP = [
  "Connection: keep-alive, X-Private",
  "X-Private: 1",
  "Keep-Alive: timeout=77",
  "Proxy-Connection: keep-alive",
  "Proxy-Authorization: Basic eDp5",
  "TE: trailers",
  "Trailer: X-Sum",
];

describe("6. requests and answers", () => {
  for (const [framing, headOf] of Object.entries(ENGINE_FRAMINGS)) {
    it(`survive HTTP/1.0 and 1.1, sized and chunked, where the engine's answer is ${framing}`, async () => {
      const reply = `{"object":"chat.completion","choices":[],"note":"${"n".repeat(3000)}"}`;
      await using worker = await Worker.start(({ socket }) => {
        const closing = framing === "ended by closing" ? ["Connection: close"] : [];
        const extra = [...closing, ...HOP_BY_HOP].join("\r\n");
        socket.write(`${headOf(reply)}Content-Type: application/json\r\nX-Kept: yes\r\n${extra}\r\n\r\n`);
        if (framing !== "chunked, in two") socket.write(reply);
        else
          socket.write(Buffer.concat([chunk(reply.slice(0, 1000)), chunk(reply.slice(1000)), Buffer.from(LAST_CHUNK)]));
        if (framing === "ended by closing" || framing === "HTTP/1.0") socket.end();
      });
      await using setup = await setUp([], { engines: [worker.url] }, 1);
      const port = Number(new URL(setup.url).port);
      const body = JSON.stringify({ model: MODEL, prompt: "p".repeat(5000), max_tokens: 1 });
      const hops = `${HOP_BY_HOP.join("\r\n")}\r\n`;
      const sized = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
      const requests = {
        "1.0, closing": `POST /v1/completions HTTP/1.0\r\n${sized}\r\n${body}`,
        "1.0, kept alive": `POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\n${sized}\r\n${body}`,
        "1.1, sized": `POST /v1/completions HTTP/1.1\r\nHost: r\r\n${hops}${sized}\r\n${body}`,
        "1.1, chunked": `POST /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${
          chunk(body.slice(0, 7)).toString() + chunk(body.slice(7)).toString() + LAST_CHUNK
        }`,
      };
      for (const [name, bytes] of Object.entries(requests)) {
        const { text } = await talk(port, bytes, (so) => bodyOf(so).length >= reply.length);
        assert.equal(bodyOf(text), reply, name);
        const head = text.slice(0, text.indexOf("\r\n\r\n") + 2);
        assert.match(head, /^HTTP\/1\.1 200 OK\r\n/, name);
        assert.match(head, /^X-Kept: yes\r$/m, name);
        assert.doesNotMatch(head, /^(x-private|keep-alive|proxy-connection|trailer|te):/im, name);
        if (name.startsWith("1.0")) assert.doesNotMatch(head, /^transfer-encoding:/im, name);
        if (name === "1.0, kept alive" && framing === "sized") assert.match(head, /^connection: keep-alive\r$/im);

        const request = worker.requests.at(-1)!;
        assert.equal(request.body.toString(), body, name);
        assert.match(request.head, /^POST \/v1\/completions HTTP\/1\.1\r\n/, name);
        assert.equal(headerOf(request, "content-length"), String(body.length), name);
        assert.doesNotMatch(
          request.head,
          /^(connection|x-private|keep-alive|proxy-\S+|te|trailer|transfer-encoding):/im,
          name,
        );
      }
    });
  }
});
