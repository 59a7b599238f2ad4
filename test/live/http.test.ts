import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { afterEach, describe, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { generate } from "selfsigned";
import { RouterError } from "#src/errors/routerError.ts";
import { Rig, ScriptedEngine, chunk, eventually, json, post, talk } from "./dispatchRig.ts";
import type { RigOptions } from "./dispatchRig.ts";

const started: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const thing of started.splice(0).reverse()) await thing.stop();
});

async function setUp(options: Partial<RigOptions> = {}) {
  const engine = await ScriptedEngine.start(({ socket, body }) => socket.write(json({ echo: body.toString() })));
  const rig = await Rig.start({ engines: [engine.url], ...options });
  started.push(engine, rig);
  return { engine, rig };
}

const status = (text: string): number => Number(text.slice(9, 12));

describe("requests on which two servers could disagree are refused, and nothing of them is forwarded", () => {
  const smuggled = "GET /smuggled HTTP/1.1\r\nHost: r\r\n\r\n";
  const headers: Record<string, string> = {
    "two lengths": "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "two equal lengths": "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": "Content-Length: 5, 5\r\n\r\nhello",
    "length and chunks": `Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    "chunks and length": `Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    "a signed length": "Content-Length: +5\r\n\r\nhello",
    "a negative length": "Content-Length: -5\r\n\r\nhello",
    "a hexadecimal length": "Content-Length: 0x5\r\n\r\nhello",
    "a length beyond all bounds": "Content-Length: 99999999999999999999999\r\n\r\nhello",
    "an empty length": "Content-Length: \r\n\r\nhello",
    "bare LF after a header": `X-A: 1\nContent-Length: 0\r\n\r\n${smuggled}`,
    "bare LF before the body": `Content-Length: 0\r\n\n${smuggled}`,
    "bare CR in a header": "X-A: 1\rContent-Length: 5\r\n\r\nhello",
    "a blank before the colon": "Content-Length : 5\r\n\r\nhello",
    "a folded header": "X-A: 1\r\n Content-Length: 5\r\n\r\nhello",
    "NUL in a value": "X-A: a\0b\r\nContent-Length: 5\r\n\r\nhello",
    "an encoding that is not chunked": "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "chunked not last": "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "gzip before chunked": "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a veiled chunked": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a vertical tab before chunked": "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a chunk size with a sign": "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
    "a chunk size with 0x": "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk size beyond 64 bits": "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
    "a chunk that ends in bare LF": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n",
    "a chunk size that ends in bare LF": "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    "a chunk longer than its size": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
    "LF in a chunk extension": "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
    "two hosts": "Host: other\r\nContent-Length: 0\r\n\r\n",
  };
  for (const [name, rest] of Object.entries(headers)) {
    test(name, async () => {
      const { engine, rig } = await setUp();
      const { text } = await talk(rig.port, Buffer.from(`POST /x HTTP/1.1\r\nHost: r\r\n${rest}`, "latin1"));
      assert.ok([400, 413, 501].includes(status(text)), text);
      assert.match(text, /^HTTP\/1\.1 [^]*Connection: close\r\n[^]*"code":"/u);
      assert.equal(text.match(/HTTP\/1\.1 \d/gu)?.length, 1);
      assert.equal(engine.received.length, 0);
    });
  }

  const starts: Record<string, [string, number]> = {
    "no host": ["GET /x HTTP/1.1\r\n\r\n", 400],
    "a host that is none": ["GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", 400],
    "chunks in HTTP/1.0": ["POST /x HTTP/1.0\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400],
    "HTTP/2 without negotiation": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
    "HTTP/0.9": ["GET /x\r\n\r\n", 505],
    "a target with high bytes": ["GET /\u00e9 HTTP/1.1\r\nHost: r\r\n\r\n", 400],
    "a target that is an authority": ["GET r:80 HTTP/1.1\r\nHost: r\r\n\r\n", 400],
    CONNECT: ["CONNECT r:80 HTTP/1.1\r\nHost: r\r\n\r\n", 405],
    TRACE: ["TRACE /x HTTP/1.1\r\nHost: r\r\n\r\n", 405],
    "an unknown method": ["BREW /x HTTP/1.1\r\nHost: r\r\n\r\n", 400],
    "TLS to a plain port": ["\x16\x03\x01\x02\x00\x01\x00\x01", 400],
  };
  for (const [name, [bytes, expected]] of Object.entries(starts)) {
    test(name, async () => {
      const { engine, rig } = await setUp();
      const { text } = await talk(rig.port, Buffer.from(bytes, "latin1"));
      assert.equal(status(text), expected, text);
      assert.equal(engine.received.length, 0);
    });
  }

  test("an absolute target loses its authority: no client chooses an address", async () => {
    const { engine, rig } = await setUp();
    for (const target of ["http://elsewhere:1/x?y=1", "HTTPS://elsewhere", "http://elsewhere?y=1"]) {
      await talk(rig.port, `GET ${target} HTTP/1.1\r\nHost: r\r\nConnection: close\r\n\r\n`);
    }
    const lines = engine.received.map(({ head }) => head.slice(0, head.indexOf("\r\n")));
    assert.deepEqual(lines, ["GET /x?y=1 HTTP/1.1", "GET / HTTP/1.1", "GET /?y=1 HTTP/1.1"]);
  });

  test("an offer to upgrade is declined by an ordinary answer", async () => {
    const { engine, rig } = await setUp();
    const offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n";
    const { text } = await talk(rig.port, post('"x"', offer), (so) => so.includes("echo"));
    assert.equal(status(text), 200);
    assert.doesNotMatch(engine.received[0]?.head ?? "", /upgrade|h2c|http2/iu);
  });
});

describe("limits", () => {
  test("headers too large, too many, or a target too long: 431", async () => {
    const { engine, rig } = await setUp({ http: { maxHeaderBytes: 1000, maxHeaderCount: 20 } });
    const many = Array.from({ length: 25 }, (_, i) => `X-${i}: 1\r\n`).join("");
    for (const request of [
      post("{}", `X-Large: ${"x".repeat(1000)}\r\n`),
      post("{}", many),
      post("{}", "", `/${"x".repeat(1000)}`),
      `POST / HTTP/1.1\r\nHost: r\r\nX-Endless: ${"x".repeat(5000)}`,
    ]) {
      const { text } = await talk(rig.port, request);
      assert.match(text, /^HTTP\/1\.1 431[^]*"code":"headers_too_large"/u);
    }
    assert.equal(engine.received.length, 0);
    assert.equal(status((await talk(rig.port, post("{}", "X-Small: 1\r\nConnection: close\r\n"))).text), 200);
  });

  test("a body too large: 413 before it is sent, or as soon as chunks exceed it", async () => {
    const { engine, rig } = await setUp({ http: { maxBodyBytes: 1000 } });
    const announced = await talk(rig.port, "POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 1001\r\n\r\n");
    assert.match(announced.text, /^HTTP\/1\.1 413[^]*"code":"body_too_large"/u);
    const grown = await talk(rig.port, [
      "POST / HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n",
      chunk("x".repeat(600)),
      chunk("x".repeat(600)),
    ]);
    assert.match(grown.text, /^HTTP\/1\.1 413/u);
    assert.equal(engine.received.length, 0);
    assert.equal(status((await talk(rig.port, post("x".repeat(1000)))).text), 200);
  });

  test("a client that sends its whole body before it reads still learns why it was refused", async () => {
    const { rig } = await setUp({ http: { maxBodyBytes: 1000 } });
    const { text, broken } = await talk(rig.port, post("x".repeat(3_000_000)));
    assert.equal(broken, false);
    assert.match(text, /^HTTP\/1\.1 413/u);
  });

  test("bodies held at a time: 503 before the body, or as soon as chunks exceed it, until others are done", async () => {
    const { engine, rig } = await setUp({ http: { maxHeldBytes: 1000 } });
    const uploads = {
      announced: [post("x".repeat(600)).slice(0, -1)],
      chunked: ["POST / HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n", chunk("x".repeat(600))],
    };
    for (const first of Object.values(uploads)) {
      const uploading = connect({ port: rig.port, host: "127.0.0.1" });
      for (const part of first) uploading.write(part);
      await eventually(() => rig.server.heldBytes === 600, "it is counted");
      for (const second of Object.values(uploads)) {
        const { text } = await talk(rig.port, second);
        assert.match(text, /^HTTP\/1\.1 503[^]*retry-after: 1\r\n[^]*"code":"queue_full"/u);
      }
      uploading.destroy();
      await eventually(() => rig.server.connections === 0, "the upload was given up");
    }
    rig.scheduler.open = false;
    const waiting = talk(rig.port, post("x".repeat(600)));
    await eventually(() => rig.scheduler.waiting.size === 1, "a whole body in hand");
    assert.equal(status((await talk(rig.port, post("x".repeat(600)))).text), 503);
    rig.scheduler.release();
    assert.equal(status((await waiting).text), 200);
    assert.equal(status((await talk(rig.port, post("x".repeat(600)))).text), 200);
    assert.equal(engine.received.length, 2);
    assert.equal(rig.server.heldBytes, 0);
  });

  test("headers or bodies that dribble in: 408, each by its own limit", async () => {
    const { rig } = await setUp({ http: { headersMs: 50, requestMs: 100_000 } });
    assert.match((await talk(rig.port, "POST / HTTP/1.1\r\nHost:")).text, /^HTTP\/1\.1 408/u);
    const { rig: other } = await setUp({ http: { headersMs: 100_000, requestMs: 50 } });
    const { text } = await talk(other.port, "POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 5\r\n\r\nhel");
    assert.match(text, /^HTTP\/1\.1 408[^]*"param":null/u);
  });

  test("idle connections close, before and between requests, without an answer", async () => {
    const { rig } = await setUp({ http: { headersMs: 50, keepAliveMs: 50 } });
    assert.equal((await talk(rig.port, "")).text, "");
    const { text } = await talk(rig.port, post("{}", ""));
    assert.equal(text.match(/HTTP\/1\.1/gu)?.length, 1);
  });

  test("connections are bounded", async () => {
    const { rig } = await setUp({ http: { maxConnections: 2 } });
    const held = [1, 2].map(() => connect({ port: rig.port, host: "127.0.0.1" }));
    await eventually(() => rig.server.connections === 2, "two connections");
    assert.equal((await talk(rig.port, post())).text, "");
    for (const socket of held) socket.destroy();
    await eventually(() => rig.server.connections === 0, "none");
    assert.equal(status((await talk(rig.port, post())).text), 200);
  });

  describe("a client that sends far ahead", () => {
    /** Sends 64 MB of further requests behind the first one; resolves when the router has read them. */
    async function flooding(port: number): Promise<Socket> {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => {});
      const further = Buffer.from(post("{}", "").repeat(10_000));
      socket.write(post());
      for (let sent = 0; sent < 64_000_000; sent += further.length) {
        if (!socket.write(further)) await once(socket, "drain");
      }
      return socket;
    }

    test("is read on without keeping it, answered once, and told that the connection closes", async () => {
      const { engine, rig } = await setUp();
      rig.scheduler.open = false;
      const before = process.memoryUsage().arrayBuffers;
      const socket = await flooding(rig.port);
      assert.ok(process.memoryUsage().arrayBuffers - before < 8_000_000);
      const answer = textOf(socket);
      rig.scheduler.release();
      const received = await answer;
      assert.equal(status(received), 200);
      assert.match(received, /\r\nConnection: close\r\n/);
      assert.equal(received.split("HTTP/1.1 ").length, 2);
      assert.equal(engine.received.length, 1);
    });

    test("is missed when it leaves, and the engine's work ends with it", async () => {
      const silent = await ScriptedEngine.start(() => {});
      started.push(silent);
      const { rig } = await setUp({ engines: [silent.url] });
      const socket = await flooding(rig.port);
      await eventually(() => silent.received.length === 1, "the engine computes");
      socket.destroy();
      await eventually(() => silent.sockets.size === 0, "the engine is told");
      assert.equal(rig.carrier.active, 0);
    });
  });
});

describe("admission comes before the body", () => {
  const overloaded = new RouterError("queue_full", "full", {
    fault: "router",
    httpStatus: 429,
    retryable: true,
    retryAfterMs: 3000,
  });

  test("with Expect: 100-continue a refused body is never asked for", async () => {
    const asked: (number | null)[] = [];
    const { rig } = await setUp({
      server: {
        admit(head) {
          asked.push(head.bodyBytes);
          return overloaded;
        },
      },
    });
    const { text } = await talk(
      rig.port,
      "POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 30000000\r\nExpect: 100-continue\r\n\r\n",
    );
    assert.match(text, /^HTTP\/1\.1 429 [^]*retry-after: 3\r\n/u);
    assert.doesNotMatch(text, /100 Continue/u);
    assert.deepEqual(asked, [30_000_000]);
  });

  test("an accepted one is asked for, once", async () => {
    const { rig } = await setUp();
    const socket = connect({ port: rig.port, host: "127.0.0.1" });
    let text = "";
    socket.on("data", (bytes: Buffer) => (text += bytes.toString()));
    socket.write("POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    await eventually(() => text === "HTTP/1.1 100 Continue\r\n\r\n", "the body is asked for");
    socket.write("hello");
    await eventually(() => text.includes("echo"), "answered");
    socket.destroy();
  });

  test("another expectation: 417", async () => {
    const { rig } = await setUp();
    assert.equal(status((await talk(rig.port, post("{}", "Expect: miracles\r\n"))).text), 417);
  });
});

describe("connections", () => {
  test("HTTP/1.0 closes, unless keep-alive is asked for", async () => {
    const { rig } = await setUp();
    const request = (headers: string): string => post("{}", headers).replace("HTTP/1.1", "HTTP/1.0");
    assert.match((await talk(rig.port, request(""))).text, /Connection: close\r\n/u);
    const { text } = await talk(
      rig.port,
      request("Connection: keep-alive\r\n") + request(""),
      (so) => so.split("echo").length > 2,
    );
    assert.match(text, /Connection: keep-alive\r\n[^]*Connection: close\r\n/u);
  });

  test("after Connection: close nothing more is read", async () => {
    const { engine, rig } = await setUp();
    const { text } = await talk(rig.port, post("{}") + post("{}"));
    assert.equal(text.match(/HTTP\/1\.1/gu)?.length, 1);
    assert.equal(engine.received.length, 1);
  });

  test("a request split at every byte is the same request", async () => {
    const { engine, rig } = await setUp();
    const bytes = Buffer.from(post('"split"', ""));
    const socket = connect({ port: rig.port, host: "127.0.0.1", noDelay: true });
    let answers = 0;
    socket.on("data", (data: Buffer) => (answers += data.toString().split("echo").length - 1));
    for (let at = 1; at < bytes.length; at++) {
      socket.write(bytes.subarray(0, at));
      await new Promise((resolve) => setImmediate(resolve));
      socket.write(bytes.subarray(at));
      await eventually(() => answers === at, `answer ${at}`);
    }
    socket.destroy();
    const [first] = engine.received;
    for (const { head, body } of engine.received) {
      assert.equal(body.toString(), '"split"');
      assert.equal(head.replace(/req-\d+/u, ""), first?.head.replace(/req-\d+/u, ""));
    }
  });

  test("a handler that throws costs its own request only", async () => {
    const { rig } = await setUp({
      call: {
        answerHeaders: () => {
          throw new Error("a mistake");
        },
      },
    });
    const { text } = await talk(rig.port, post());
    assert.match(text, /^HTTP\/1\.1 500[^]*"code":"internal"/u);
    assert.doesNotMatch(text, /a mistake/u);
    assert.equal(rig.scheduler.live.size, 0);
    const { rig: other } = await setUp({
      server: {
        handle: () => {
          throw new Error("another");
        },
      },
    });
    assert.match((await talk(other.port, post())).text, /^HTTP\/1\.1 500/u);
  });

  test("what no header may hold is replaced, not sent", async () => {
    const { rig } = await setUp({ call: { answerHeaders: () => ["x-name", "a\r\nX-Injected: 1\u{1f600}"] } });
    const { text } = await talk(rig.port, post());
    assert.match(text, /^x-name: a\?\?X-Injected: 1\?\r$/mu);
  });

  test("TLS: large bodies both ways; the engine's certificate is verified", async () => {
    const { private: key, cert } = await generate([{ name: "commonName", value: "localhost" }], {
      keySize: 2048,
      extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
    });
    const { rig: engineSide } = await setUp({ server: { tls: { key, cert } } });
    const engines = [`https://localhost:${engineSide.port}`];
    const { rig } = await setUp({ server: { tls: { key, cert } } });
    const trusting = await Rig.start({ engines, upstream: { tls: { ca: cert } }, server: { tls: { key, cert } } });
    const wary = await Rig.start({ engines });
    started.push(trusting, wary);
    assert.ok(rig.port > 0);

    const body = "t".repeat(500_000);
    const socket = connectTls({ port: trusting.port, host: "localhost", ca: cert, servername: "localhost" });
    let text = "";
    socket.on("data", (bytes: Buffer) => (text += bytes.toString()));
    socket.on("error", () => {});
    socket.write(post(body));
    await eventually(() => text.includes(body), "the body came back");
    socket.destroy();

    const refused = await talk(wary.port, post());
    assert.match(refused.text, /^HTTP\/1\.1 502[^]*"code":"engine_unreachable"/u);
  });
});
