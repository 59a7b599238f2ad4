// Behaviour 17: every limit in time is its own, and there are no others.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createServer as createTlsServer } from "node:https";
import { generate } from "selfsigned";
import { chunk, STREAM_HEAD, type Received } from "../dispatchRig.ts";
import { chat, MODEL, setUp, until } from "../gatewaySetup.ts";
import { chatBytes, Client } from "./client.ts";
import { token, Worker } from "./worker.ts";

const WAYS: Record<string, { limits: Record<string, number>; engine: (request: Received) => void; code: string }> = {
  "no byte of an answer": { limits: { firstTokenMs: 150 }, engine: () => {}, code: "first_token_timeout" },
  "headers, and no token": {
    limits: { firstTokenMs: 150 },
    engine: ({ socket }) => void socket.write(STREAM_HEAD),
    code: "first_token_timeout",
  },
  "a pause in a stream": {
    limits: { idleMs: 150 },
    engine: ({ socket }) => void socket.write(`${STREAM_HEAD}${chunk(token()).toString()}`),
    code: "idle_timeout",
  },
  "a stream that flows for too long": {
    limits: { totalMs: 400 },
    engine: ({ socket }) => {
      socket.write(STREAM_HEAD);
      const timer = setInterval(() => socket.write(chunk(token())), 20);
      socket.once("close", () => clearInterval(timer));
    },
    code: "total_timeout",
  },
};

describe("17. limits in time", { concurrency: true }, () => {
  for (const [what, { limits, engine, code }] of Object.entries(WAYS)) {
    it(`${what}: ${code}, and the engine is told`, async () => {
      let dropped = 0;
      await using worker = await Worker.start((request) => {
        request.socket.once("close", () => dropped++);
        engine(request);
      });
      await using setup = await setUp([], { engines: [worker.url], limits }, 1);
      const text = await (await chat(setup.url, { stream: true })).text();
      assert.equal(/"code":"(\w+)"/.exec(text)?.[1], code);
      assert.ok(!text.includes("[DONE]"));
      await until("the engine was told", () => dropped === 1);
    });
  }

  it("each counts its own phase only: a short one for tokens leaves a long prompt alone, and the reverse", async () => {
    await using worker = await Worker.start(({ socket }) => {
      setTimeout(() => socket.write(`${STREAM_HEAD}${chunk(token()).toString()}`), 500);
    });
    await using slowPrompt = await setUp([], { engines: [worker.url], limits: { idleMs: 100 } }, 1);
    const long = new Client(slowPrompt.url, chatBytes({ stream: true }));
    await until("the token of a long prompt came", () => long.text.includes("word"));
    assert.ok(!/first_token|connect_timeout/.test(long.text));

    await using flowing = await Worker.start(({ socket }) => {
      socket.write(`${STREAM_HEAD}${chunk(token()).toString()}`);
      setTimeout(() => socket.write(chunk(token("late"))), 2500);
    });
    await using slowTokens = await setUp([], { engines: [flowing.url], limits: { firstTokenMs: 1500 } }, 1);
    const paused = new Client(slowTokens.url, chatBytes({ stream: true }));
    await until("the token after a long pause came", () => paused.text.includes("late"));
    assert.ok(!paused.text.includes("error"));
    for (const client of [long, paused]) client.leave();
  });

  it("a client that sends its body too slowly gets a 408", async () => {
    await using worker = await Worker.start(() => {});
    await using setup = await setUp([], { engines: [worker.url], limits: { receiveMs: 200 } }, 1);
    const client = new Client(setup.url, chatBytes({ user: "u".repeat(100) }).slice(0, -50));
    await client.closed;
    assert.equal(client.status, 408);
    assert.equal(worker.requests.length, 0);
  });

  it("a connection that does not come to stand: connect_timeout", async () => {
    const folder = await mkdtemp(join(tmpdir(), "kvasir-limits-"));
    const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
      extensions: [{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
    });
    await writeFile(join(folder, "cert.pem"), cert);
    const answers: Record<string, string> = {
      "/health": "",
      "/version": `{"version":"0.32.0"}`,
      "/v1/models": `{"object":"list","data":[{"id":"${MODEL}","owned_by":"vllm"}]}`,
    };
    const engine = createTlsServer(
      { cert, key },
      (request, response) => void response.end(answers[request.url ?? ""] ?? ""),
    );
    let shakesHands = true;
    const sockets = new Set<Socket>();
    const front = createServer((socket) => {
      sockets.add(socket.on("error", () => {}));
      if (shakesHands) engine.emit("connection", socket);
    });
    await new Promise<void>((listening) => front.listen(0, "127.0.0.1", listening));
    const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
    try {
      const engineTls = { caFile: join(folder, "cert.pem") };
      await using setup = await setUp([], { engines: [url], engineTls, limits: { connectMs: 150 } }, 1);
      shakesHands = false;
      const response = await chat(setup.url, {});
      assert.equal(response.status, 504);
      assert.match(await response.text(), /"code":"connect_timeout"/);
    } finally {
      for (const socket of sockets) socket.destroy();
      front.close();
      await rm(folder, { recursive: true });
    }
  });
});
