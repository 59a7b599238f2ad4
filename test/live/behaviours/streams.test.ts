// Behaviours 7 to 9: streams that pass, and streams that break.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { bodyOf, chunk, json, LAST_CHUNK, post, STREAM_HEAD, talk, type Received } from "../dispatchRig.ts";
import { chat, MODEL, setUp, until } from "../gatewaySetup.ts";
import { metric } from "./books.ts";
import { chatBytes } from "./client.ts";
import { asked, DONE, stream, token, Worker } from "./worker.ts";

const USAGE = `data: {"id":"1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}`;

/** Whatever the protocol of events allows: line ends, comments, missing blanks, characters of several bytes. */
const EVENTS = [
  `: keep-alive\n\n`,
  `data:{"choices":[{"delta":{"content":"no blank 🦜"}}]}\r\n\r\n`,
  `id: 7\nevent: x\nretry: 10\ndata: {"choices":[{"delta":{"content":"\\ud83e\\udd9c \\" []"}}]}\n\n`,
  `data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}\n\n`,
  `data: {"choices":[{"delta":{"content":"日本語"}}],"usage":null}\n\n`,
];
const WHOLE = Buffer.from(`${EVENTS.join("")}${USAGE}\r\n\r\ndata: [DONE]\n\n`);
const STRIPPED = Buffer.from(`${EVENTS.join("")}data: [DONE]\n\n`);

/** Writes pieces so that each is read by itself. */
async function inPieces(socket: Socket, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) {
    if (piece.length > 0) await new Promise((written) => socket.write(piece, written));
    await new Promise((turn) => setImmediate(turn));
  }
}

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.toSorted((a, b) => a - b), bytes.length];
  return ends.map((end, at) => bytes.subarray(at === 0 ? 0 : ends[at - 1], end));
}

describe("7. a stream", () => {
  const raw = Buffer.concat([Buffer.from(STREAM_HEAD), chunk(WHOLE), Buffer.from(LAST_CHUNK)]);

  /** The request says where its answer is cut. */
  function cutter(): Promise<Worker> {
    return Worker.start((request) => {
      const places = JSON.parse(String(asked(request)["user"])) as number[];
      void inPieces(request.socket, cutAt(raw, places));
    });
  }

  function askCut(url: string, places: readonly number[], usage: boolean): Promise<string> {
    const more = usage ? { stream_options: { include_usage: true } } : {};
    const bytes = chatBytes({ stream: true, user: JSON.stringify(places), ...more }, "Connection: close\r\n");
    return talk(Number(new URL(url).port), bytes).then(({ text }) => bodyOf(text));
  }

  it("leaves as it came, cut at any byte, head and framing included", async () => {
    await using worker = await cutter();
    await using setup = await setUp([], { engines: [worker.url], log: { requests: false } }, 1);
    for (const [usage, expected] of [
      [true, WHOLE],
      [false, STRIPPED],
    ] as const) {
      // What nobody touches need not be cut quite everywhere.
      const places = Array.from({ length: raw.length }, (_, at) => at).filter((at) => !usage || at % 4 === 1);
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          for (let at = places.pop(); at !== undefined; at = places.pop())
            assert.equal(await askCut(setup.url, [at], usage), expected.toString("latin1"), `cut at ${at}`);
        }),
      );
    }
  });

  it("leaves as it came, cut at any many bytes", async () => {
    await using worker = await cutter();
    await using setup = await setUp([], { engines: [worker.url], log: { requests: false } }, 1);
    const places = fc.array(fc.nat({ max: raw.length }), { minLength: 2, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(places, fc.boolean(), async (cuts, usage) => {
        const expected = usage ? WHOLE : STRIPPED;
        assert.equal(await askCut(setup.url, cuts, usage), expected.toString("latin1"));
      }),
      { numRuns: 60, seed: 7 },
    );
  });
});

describe("8. a usage chunk with no choices", () => {
  const options: readonly [string, unknown, boolean][] = [
    ["asked for", { include_usage: true }, true],
    ["asked for, among other options", { continuous_usage_stats: false, include_usage: true }, true],
    ["not mentioned", undefined, false],
    ["refused", { include_usage: false }, false],
    ["left open", {}, false],
    ["left open by null", null, false],
  ];
  for (const [how, stream_options, wanted] of options) {
    for (const path of ["/v1/chat/completions", "/v1/completions"]) {
      it(`${wanted ? "passes" : "is taken out, as the router asked for it"}: ${how}, ${path}`, async () => {
        await using worker = await Worker.start(({ socket }) => {
          socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(WHOLE), Buffer.from(LAST_CHUNK)]));
        });
        await using setup = await setUp([], { engines: [worker.url] }, 1);
        const prompt = path.includes("chat") ? { messages: [{ role: "user", content: "x" }] } : { prompt: "x" };
        const body = JSON.stringify({ model: MODEL, ...prompt, stream: true, stream_options });
        const { text } = await talk(Number(new URL(setup.url).port), post(body, "Connection: close\r\n", path));
        assert.equal(bodyOf(text), (wanted ? WHOLE : STRIPPED).toString("latin1"));
        const sent = asked(worker.requests[0]!)["stream_options"] as Record<string, unknown>;
        assert.equal(sent["include_usage"], true);
        if (wanted) assert.equal(worker.requests[0]?.body.toString(), body);
        assert.equal(await metric(setup, `kvasir_prompt_tokens_total{model="${MODEL}"}`), 5);
      });
    }
  }
});

/** What an engine may do with a request before it has sent anything of the answer. */
const DEATHS_BEFORE: Record<string, (request: Received) => void> = {
  "closes when it has read the request": ({ socket }) => socket.end(),
  "resets the connection": ({ socket }) => socket.resetAndDestroy(),
  "dies within the status line": ({ socket }) => socket.end("HTTP/1.1 20"),
  "dies within the headers": ({ socket }) => socket.end("HTTP/1.1 200 OK\r\nContent-Type: text/event-st"),
  "dies after the headers, in the prompt": ({ socket }) => {
    socket.write(STREAM_HEAD);
    setTimeout(() => socket.destroy(), 20);
  },
  "answers 502 for a process behind it": ({ socket }) => socket.write(json({}, "502 Bad Gateway")),
  "answers what is not HTTP": ({ socket }) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"),
};

/** The same, after some of the answer was sent. */
const DEATHS_AFTER: Record<string, (socket: Socket) => void> = {
  "between two events": (socket) => socket.end(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(token())])),
  "within an event": (socket) =>
    socket.end(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(token()), chunk(token().slice(0, 20))])),
  "within a chunk": (socket) => socket.end(`${STREAM_HEAD}${chunk(token()).toString()}ffff\r\ndata: {"cho`),
  "by a reset": (socket) => {
    socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(token())]));
    setTimeout(() => socket.resetAndDestroy(), 20);
  },
};

describe("9. an engine that dies", () => {
  for (const [how, die] of Object.entries(DEATHS_BEFORE)) {
    it(`before the first byte is replaced, and the prompt runs once: it ${how}`, async () => {
      await using bad = await Worker.start(die);
      await using good = await Worker.start(({ socket }) => void socket.write(stream(3)));
      await using setup = await setUp([], { engines: [bad.url, good.url], policy: "round-robin" }, 2);
      for (let at = 0; at < 2; at++) {
        const response = await chat(setup.url, { stream: true });
        assert.equal(response.status, 200);
        assert.equal(await response.text(), `${token()}${token()}${token()}${DONE}`);
        assert.equal(response.headers.get("x-kvasir-replica"), good.id);
      }
      assert.deepEqual([bad.requests.length, good.requests.length], [1, 2]);
    });
  }

  for (const [how, die] of Object.entries(DEATHS_AFTER)) {
    it(`after it gives one error event and no [DONE]: ${how}`, async () => {
      await using bad = await Worker.start(({ socket }) => die(socket));
      await using good = await Worker.start(({ socket }) => void socket.write(stream(3)));
      await using setup = await setUp([], { engines: [bad.url, good.url], policy: "round-robin" }, 2);
      const texts = await Promise.all([1, 2].map(async () => (await chat(setup.url, { stream: true })).text()));
      const [broken = ""] = texts.filter((text) => !text.includes("[DONE]"));
      assert.ok(broken.startsWith(token()));
      assert.equal(broken.match(/"error":/g)?.length, 1);
      const last = broken.split("\n\n").at(-2) ?? "";
      const { error } = JSON.parse(last.slice("data: ".length)) as { error: Record<string, unknown> };
      assert.deepEqual([error["code"], error["fault"]], ["engine_failed", "engine"]);
      assert.deepEqual([bad.requests.length, good.requests.length], [1, 1]);
    });
  }

  it("after [DONE] has given its whole answer", async () => {
    await using bad = await Worker.start(({ socket }) => {
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(token()), chunk(DONE)]));
      setTimeout(() => socket.destroy(), 20);
    });
    await using setup = await setUp([], { engines: [bad.url] }, 1);
    assert.equal(await (await chat(setup.url, { stream: true })).text(), `${token()}${DONE}`);
    assert.equal(await metric(setup, `kvasir_replica_attempts_total{replica="${bad.id}",outcome="failed"}`), null);
  });

  it("within an answer in one piece breaks the client's connection, and is not retried", async () => {
    await using bad = await Worker.start(({ socket }) => {
      socket.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"choices":');
    });
    await using setup = await setUp([], { engines: [bad.url] }, 1);
    const { text } = await talk(Number(new URL(setup.url).port), chatBytes());
    assert.equal(bodyOf(text), `{"choices":`);
    assert.equal(bad.requests.length, 1);
  });

  it("by falling silent is cut at the limit for pauses, before and after its first token at two limits", async () => {
    let events = 0;
    let dropped = 0;
    await using stalls = await Worker.start(({ socket }) => {
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), ...Array.from({ length: events }, () => chunk(token()))]));
      socket.once("close", () => dropped++);
    });
    await using setup = await setUp([], { engines: [stalls.url], limits: { idleMs: 250, firstTokenMs: 500 } }, 1);
    events = 2;
    assert.match(
      await (await chat(setup.url, { stream: true })).text(),
      /^(data: .*\n\n){2}data: .*"idle_timeout".*\n\n$/,
    );
    events = 0;
    const late = await chat(setup.url, { stream: true });
    assert.equal(late.status, 504);
    assert.match(await late.text(), /"first_token_timeout"/);
    await until("the engine was told both times", () => dropped === 2);
  });
});
