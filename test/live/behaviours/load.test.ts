// Behaviours 41 and 42: much at a time, and for long.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { json, post } from "../dispatchRig.ts";
import { MODEL, setUp, until } from "../gatewaySetup.ts";
import { startScriptedEngine } from "../scriptedEngine.ts";
import { leftOver } from "./books.ts";
import { chatBytes, Client } from "./client.ts";
import { answer, stream, Worker } from "./worker.ts";

const random = new SeededRandom(41);
/** Text in which nothing repeats. */
const TEXT = Array.from({ length: 300_000 }, () => random.next().toString(36).slice(2)).join(" ");

/** A prompt of its own of so many bytes. */
function prompt(bytes: number, seed: number): string {
  return `${seed} ${TEXT.slice(seed, seed + bytes)}`;
}

describe("41. long prompts at a time", () => {
  it("128 of 40k tokens are read one after the other, with turns of the loop between them", async () => {
    await using engine = await startScriptedEngine((_request, response) => void response.end("{}"));
    await using setup = await setUp([], { engines: [engine.url], log: { requests: false } }, 1);
    const said = (at: number): unknown => [{ role: "user", content: prompt(180_000, at) }];
    const bodies = Array.from({ length: 128 }, (_, at) => chatBytes({ messages: said(at) }));
    /** How many prompts were read, hashed and placed in each turn. */
    const perTurn: number[] = [];
    let watched = true;
    let seen = 0;
    function turn(): void {
      const { size } = setup.router.decisions;
      perTurn.push(size - seen);
      seen = size;
      if (watched) setImmediate(turn);
    }
    turn();
    const clients = bodies.map((bytes) => new Client(setup.url, bytes));
    await until("all are answered", () => clients.every(({ status }) => status === 200));
    watched = false;
    assert.ok(setup.router.decisions.recent(1)[0]!.promptTokens > 40_000);
    assert.equal(
      perTurn.reduce((sum, prompts) => sum + prompts, 0),
      128,
    );
    // 180 KB are read and hashed in less than a tenth of a millisecond once compiled; what must not be is all of them in one turn.
    assert.ok(Math.max(...perTurn) <= 8, `prompts in one turn: ${Math.max(...perTurn)}`);
    for (const client of clients) client.leave();
  });

  it("larger ones are read and hashed on threads: a small request passes those that came before it", async () => {
    const order: number[] = [];
    await using engine = await startScriptedEngine(({ body }, response) => {
      order.push(body.length);
      response.end("{}");
    });
    await using setup = await setUp([], { engines: [engine.url], log: { requests: false } }, 1);
    const large = Array.from({ length: 12 }, (_, at) => {
      return new Client(setup.url, chatBytes({ messages: [{ role: "user", content: prompt(3_000_000, at) }] }));
    });
    await until("the first were read", () => order.length >= 2);
    const small = new Client(setup.url, chatBytes());
    await until("all are answered", () => [small, ...large].every(({ status }) => status === 200));
    const place = order.findIndex((bytes) => bytes < 10_000);
    assert.ok(place < 12, `the small one was number ${place}`);
    assert.ok(setup.router.decisions.recent(13).filter(({ promptTokens }) => promptTokens > 700_000).length === 12);
    for (const client of [small, ...large]) client.leave();
  });
});

describe("42. steady traffic", () => {
  it("grows nothing: every structure and every family of metrics stays as large as after the first requests", async () => {
    await using worker = await Worker.start(({ socket, body }) => {
      const kind = random.below(12);
      if (kind === 0) socket.destroy();
      else if (kind === 1) socket.write(json({ error: "no" }, "422 Unprocessable Entity"));
      else socket.write(body.includes(`"stream":true`) ? stream(4) : answer({ prompt: 300, cached: 0, output: 3 }));
    });
    await using other = await Worker.start(({ socket, body }) => {
      socket.write(body.includes(`"stream":true`) ? stream(4) : answer({ prompt: 300, cached: 0, output: 3 }));
    });
    const engines = [worker, other].map(({ url }) => ({ url, kvCapacityTokens: 40_000 }));
    await using setup = await setUp([], { engines, policy: "round-robin", log: { requests: false } }, 2);
    const { fleet, decisions } = setup.router;

    async function ask(at: number): Promise<void> {
      const bytes = [
        chatBytes({ messages: [{ role: "user", content: prompt(1500, at) }], stream: true, user: `user ${at}` }),
        post(
          JSON.stringify({ model: MODEL, prompt: prompt(1500, at), cache_salt: `salt ${at}` }),
          "",
          "/v1/completions",
        ),
        post(JSON.stringify({ model: `model ${at}`, prompt: "x" }), "", "/v1/completions"),
        post(JSON.stringify({ model: MODEL, text: "x" }), `X-Session-Id: session ${at}\r\n`, `/path/${at}?q=${at}`),
        `GET /nowhere/${at} HTTP/1.1\r\nHost: h${at}\r\nX-Api-Key: key-${at}\r\n\r\n`,
      ][at % 5]!;
      const client = new Client(setup.url, bytes);
      if (at % 7 !== 0) await client.sees((text) => text.includes("\r\n\r\n"));
      else await new Promise((turn) => setImmediate(turn));
      client.leave();
    }

    async function sizes(): Promise<Record<string, number>> {
      await until("nothing is under way", async () => Object.keys(await leftOver(setup)).length === 0);
      const text = await (await fetch(`${setup.adminUrl}/metrics`)).text();
      return {
        // Conditions come and go with what was seen of each engine: they have a bound of their own below.
        series: text.split("\n").filter((line) => !/^#|^kvasir_conditions?\b/.test(line)).length,
        outputLengths: fleet.outputLengths.size,
        tokenDensity: fleet.tokenDensity.size,
        models: fleet.models().length,
      };
    }

    async function askMany(from: number, count: number): Promise<void> {
      let next = from;
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          while (next < from + count) await ask(next++);
        }),
      );
    }

    await askMany(0, 500);
    const early = await sizes();
    await askMany(500, 1500);
    assert.deepEqual(await sizes(), early);
    const conditions = fleet.conditions.list();
    const kinds = new Set(conditions.map(({ key }) => key)).size;
    assert.ok(conditions.length <= kinds * (engines.length + 1), `${conditions.length} of ${kinds} kinds`);
    const tokens = fleet.index.size * (512 / fleet.tokenDensity.bytesPerToken(MODEL));
    assert.ok(tokens <= 2 * 40_000, `${fleet.index.size} blocks of ${tokens} tokens`);
    assert.ok(decisions.size <= 4096);
    assert.ok(worker.sockets.size + other.sockets.size <= 40, "connections to engines");
  });
});
