import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { LAST_CHUNK, Rig, ScriptedEngine, bodyOf, chunk, json, post, talk } from "./dispatchRig.ts";
import type { Received, RigOptions } from "./dispatchRig.ts";

const started: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const thing of started.splice(0).reverse()) await thing.stop();
});

async function setUp(script: (request: Received) => void, options: Partial<RigOptions> = {}) {
  const engine = await ScriptedEngine.start(script);
  const rig = await Rig.start({ engines: [engine.url], ...options });
  started.push(engine, rig);
  return { engine, rig };
}

describe("what an engine is sent", () => {
  test("hop-by-hop headers stay behind, those that Connection names too; the others keep form and order", async () => {
    const { engine, rig } = await setUp(({ socket }) => socket.write(json({ ok: 1 })));
    const extra =
      "X-First: 1\r\nConnection: close, X-Private\r\nX-Private: p\r\nKeep-Alive: timeout=9\r\nTE: trailers\r\n" +
      "Proxy-Authorization: Basic x\r\nUpgrade: h2c\r\nAccept-Encoding: gzip\r\ntraceparent: 00-ab-cd-01\r\nx-Second: \u00e9\r\n";
    await talk(rig.port, Buffer.from(post("{}", extra), "latin1"));
    const head = engine.received[0]?.head ?? "";
    const names = [...head.matchAll(/^([\w-]+): /gmu)].map((match) => match[1]);
    assert.deepEqual(names, [
      "Host",
      "Content-Type",
      "X-First",
      "Accept-Encoding",
      "traceparent",
      "x-Second",
      "X-Request-Id",
      "Content-Length",
    ]);
    assert.match(head, /^Host: 127\.0\.0\.1:\d+\r$/mu);
    assert.match(head, /^x-Second: \u00e9\r$/mu);
  });

  test("the client's credentials and ids give way to the engine's key, the router's id and the rank", async () => {
    const { engine, rig } = await setUp(({ socket }) => socket.write(json({})), {
      replica: {
        endpoint: { url: "", apiKey: "engine-key" },
        rank: 3,
        profile: { kind: "vllm" },
      },
    });
    const replica = rig.scheduler.replicas[0];
    assert.ok(replica);
    rig.scheduler.replicas[0] = { ...replica, endpoint: { url: engine.url, apiKey: "engine-key" } };
    const secrets =
      "Connection: close\r\nAuthorization: Bearer client\r\nX-Api-Key: client\r\nCookie: c=1\r\nX-Request-Id: mine\r\nX-Data-Parallel-Rank: 7\r\n";
    await talk(rig.port, post("{}", secrets));
    const head = engine.received[0]?.head ?? "";
    assert.doesNotMatch(head, /client|mine|c=1|: 7/u);
    assert.match(head, /^Authorization: Bearer engine-key\r$/mu);
    assert.match(head, /^x-data-parallel-rank: 3\r$/imu);
    assert.match(head, /^X-Request-Id: req-00000000\r$/mu);
  });

  test("a body of several spliced pieces arrives whole, with its exact length", async () => {
    const big = Buffer.alloc(100_000, "x");
    const { engine, rig } = await setUp(({ socket }) => socket.write(json({})), {
      call: { body: () => [Buffer.from('{"model":'), Buffer.from('"m"'), big] },
    });
    await talk(rig.port, post("{}"));
    assert.equal(engine.received[0]?.body.toString(), `{"model":"m"${big.toString()}`);
  });

  test("a large body survives, sized or chunked", async () => {
    const { engine, rig } = await setUp(({ socket }) => socket.write(json({})));
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
    const head = (length: string): string => `POST /x HTTP/1.1\r\nHost: r\r\nConnection: close\r\n${length}\r\n\r\n`;
    await talk(rig.port, [head(`Content-Length: ${body.length}`), body]);
    await talk(rig.port, [
      head("Transfer-Encoding: chunked"),
      chunk(body.subarray(0, 100_001)),
      chunk(body.subarray(100_001)),
      "0\r\nX-Trailer: dropped\r\n\r\n",
    ]);
    assert.equal(engine.received.length, 2);
    for (const { body: arrived, head: sent } of engine.received) {
      assert.ok(arrived.equals(body));
      assert.doesNotMatch(sent, /transfer-encoding|x-trailer/iu);
    }
  });
});

describe("what a client is sent", () => {
  const framings: Record<string, string> = {
    sized: "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello",
    chunked: `HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\nX-Trailer: t\r\n\r\n`,
    "chunked, after 100 and 103":
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello",
  };
  for (const [name, bytes] of Object.entries(framings)) {
    test(`a ${name} answer, to HTTP/1.1 and HTTP/1.0, over one engine connection`, async () => {
      const { engine, rig } = await setUp(({ socket }) => socket.write(bytes));
      for (const version of ["1.1", "1.0"]) {
        const { text } = await talk(rig.port, post().replace("HTTP/1.1", `HTTP/${version}`));
        assert.match(text, /^HTTP\/1\.1 200 OK\r\n/u);
        assert.match(text, /^X-A: 1\r$/mu);
        assert.doesNotMatch(text, /x-trailer|early/iu);
        assert.equal(bodyOf(text), "hello");
        if (version === "1.0") assert.doesNotMatch(text, /transfer-encoding/iu);
      }
      assert.equal(engine.connections, 1);
    });
  }

  test("an answer that ends with its connection, from HTTP/1.0 too", async () => {
    for (const version of ["1.0", "1.1"]) {
      const { rig } = await setUp(({ socket }) => socket.end(`HTTP/${version} 200 OK\r\nX-A: 1\r\n\r\nhello`));
      const { text } = await talk(rig.port, post());
      assert.equal(bodyOf(text), "hello");
    }
  });

  test("HEAD, 204 and 304 have no body, whatever their headers say, and leave both connections usable", async () => {
    const { engine, rig } = await setUp(({ socket, head }) => {
      if (head.startsWith("HEAD")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
      else if (head.includes("/204")) socket.write("HTTP/1.1 204 No Content\r\n\r\n");
      else if (head.includes("/304")) socket.write("HTTP/1.1 304 Not Modified\r\nETag: e\r\n\r\n");
      else socket.write(json({ last: true }));
    });
    const get = (method: string, path: string): string => `${method} ${path} HTTP/1.1\r\nHost: r\r\n\r\n`;
    const all = get("HEAD", "/h") + get("GET", "/204") + get("GET", "/304") + get("GET", "/j");
    const { text } = await talk(rig.port, all, (so) => so.includes("last"));
    assert.deepEqual(
      [...text.matchAll(/^HTTP\/1\.1 (\d+)/gmu)].map((match) => match[1]),
      ["200", "204", "304", "200"],
    );
    assert.match(text, /Content-Length: 5\r\n/u);
    assert.equal(engine.connections, 1);
  });

  test("hop-by-hop headers of the engine stay behind; set-cookie twice and unknown ones pass in order", async () => {
    const { rig } = await setUp(({ socket }) =>
      socket.write(
        "HTTP/1.1 201 Created\r\nSet-Cookie: a=1\r\nConnection: X-Hop, keep-alive\r\nX-Hop: h\r\nKeep-Alive: timeout=5\r\nX-Odd: \u00e9\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
        "latin1",
      ),
    );
    const { text } = await talk(rig.port, post());
    assert.match(text, /^HTTP\/1\.1 201 Created\r\nSet-Cookie: a=1\r\nX-Odd: \u00e9\r\nSet-Cookie: b=2\r\n/u);
    assert.doesNotMatch(text, /hop|keep-alive/iu);
  });

  test("the router's own headers replace the engine's of the same name", async () => {
    const { rig } = await setUp(({ socket }) => socket.write(json({}, "200 OK", "X-Request-Id: engine\r\n")), {
      call: { answerHeaders: (placement) => ["x-request-id", "router", "x-kvasir-replica", placement.replica.id] },
    });
    const { text } = await talk(rig.port, post());
    assert.equal(/x-request-id: (.*)\r/iu.exec(text)?.[1], "router");
    assert.doesNotMatch(text, /: engine/u);
    assert.match(text, /^x-kvasir-replica: http:\/\/127/mu);
  });

  test("pipelined requests are answered in order", async () => {
    const { rig } = await setUp(({ socket, body }) => socket.write(json({ echo: body.toString() })));
    const all = Array.from({ length: 20 }, (_, i) => post(`"${i}"`, "")).join("");
    const { text } = await talk(rig.port, all, (so) => so.includes('\\"19\\"'));
    const order = [...text.matchAll(/\\"(\d+)\\"/gu)].map((match) => Number(match[1]));
    assert.deepEqual(
      order,
      Array.from({ length: 20 }, (_, i) => i),
    );
  });

  test("an engine that answers before it has read the body gets no second request over that connection", async () => {
    const { engine, rig } = await setUp(() => {});
    const early = await ScriptedEngine.start(() => {});
    started.push(early);
    rig.scheduler.replicas[0] = { id: "early", endpoint: { url: early.url, apiKey: null }, rank: null, profile: null };
    // The engine stops reading at the head, so a body larger than all socket buffers cannot have left.
    const timer = setInterval(() => {
      for (const socket of early.sockets) {
        socket.pause();
        if (!socket.writableEnded && socket.bytesWritten === 0)
          socket.write(json({ error: "too long" }, "400 Bad Request"));
      }
    }, 1);
    const { text } = await talk(rig.port, post("x".repeat(30_000_000)));
    clearInterval(timer);
    assert.match(text, /^HTTP\/1\.1 400/u);
    assert.equal(engine.received.length, 0);
    assert.equal(rig.attempts[0]?.outcome.kind, "answered");
    assert.equal(rig.upstreams.connections <= 1, true);
  });

  test("chunks are framed anew, whatever their size", async () => {
    const body = "y".repeat(200_000);
    const { rig } = await setUp(({ socket }) =>
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(body).toString()}${LAST_CHUNK}`),
    );
    const { text } = await talk(rig.port, post());
    assert.equal(bodyOf(text), body);
  });
});
