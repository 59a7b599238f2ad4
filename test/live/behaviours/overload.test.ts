// Behaviours 14, 31 and 32: more requests than the fleet has slots.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hashClientKey } from "#src/gateway/clientKey.ts";
import { json, post, talk, type Received } from "../dispatchRig.ts";
import { MODEL, setUp, until } from "../gatewaySetup.ts";
import { leftOver } from "./books.ts";
import { chatBytes, Client } from "./client.ts";
import { answer, asked, Worker } from "./worker.ts";

const BIG_BYTES = 30_000_000;

describe("overload", { concurrency: true }, () => {
  describe("14. a full router", () => {
    it("refuses a body of 30 MB with the time to come back, before it has read it", async () => {
      const held: Received[] = [];
      await using worker = await Worker.start((request) => void held.push(request));
      const engines = [{ url: worker.url, maxRunningRequests: 2 }];
      await using setup = await setUp([], { engines, limits: { queueRequests: 3 } }, 1);
      const clients = Array.from({ length: 5 }, () => new Client(setup.url, chatBytes()));
      await until("two run and three wait", () => held.length === 2 && setup.router.scheduler.depth.requests === 3);
      const length = `Content-Length: ${BIG_BYTES}\r\n`;
      for (const framing of [length, `${length}Expect: 100-continue\r\n`, "Transfer-Encoding: chunked\r\n"]) {
        // Only the head is sent: the answer cannot depend on what follows.
        const head = `POST /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\n${framing}\r\n`;
        const { text } = await talk(Number(new URL(setup.url).port), head, (so) => so.includes("}}"));
        assert.match(text, /^HTTP\/1\.1 429 /);
        assert.doesNotMatch(text, /100 Continue/);
        assert.match(text, /^retry-after: [1-9]\d*\r$/im);
        assert.match(text, /"code":"queue_full".*"retryable":true/);
      }
      // A client that sends on all the same hears the answer rather than a reset.
      const whole = `POST /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\n${length}\r\n${"x".repeat(1_000_000)}`;
      const { text } = await talk(Number(new URL(setup.url).port), whole, (so) => so.includes("}}"));
      assert.match(text, /^HTTP\/1\.1 429 /);
      assert.equal(worker.requests.length, 2);
      for (const client of clients) client.leave();
      await until("nothing is left", async () => Object.keys(await leftOver(setup)).length === 0);
    });

    it("bounds what it holds in bytes too: of what waits, and of what comes in", async () => {
      await using worker = await Worker.start(() => {});
      const engines = [{ url: worker.url, maxRunningRequests: 1 }];
      await using setup = await setUp([], { engines, limits: { queueBytes: 50_000, bufferedBytes: 200_000 } }, 1);
      const large = (bytes: number): string => chatBytes({ user: "u".repeat(bytes) });
      const clients = [1, 2].map(() => new Client(setup.url, large(20_000)));
      await until("one runs, one waits", () => setup.router.scheduler.depth.requests === 1);
      const waits = new Client(setup.url, large(40_000));
      await until("it is answered", () => waits.text.includes("}}"));
      assert.match(waits.text, /^HTTP\/1\.1 429 .*"code":"queue_full"/s);
      const comes = new Client(setup.url, large(190_000));
      await until("it is answered", () => comes.text.includes("}}"));
      assert.match(comes.text, /^HTTP\/1\.1 (429|503) .*^retry-after: .*"code":"queue_full"/ms);
      // Those that are still being received count as well, however they are framed.
      const halves = [`Content-Length: 150000\r\n\r\n`, `Transfer-Encoding: chunked\r\n\r\n249f0\r\n`].flatMap(
        (framing) =>
          [1, 2].map(() => {
            const head = `POST /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\n${framing}`;
            return new Client(setup.url, `${head}${"x".repeat(120_000)}`);
          }),
      );
      await until(
        "most are refused",
        () => halves.filter(({ status }) => status === 429 || status === 503).length >= 3,
      );
      for (const client of [...clients, waits, comes, ...halves]) client.leave();
    });

    it("that gives up on a wait says so in time, and when to come back", async () => {
      await using worker = await Worker.start(() => {});
      const engines = [{ url: worker.url, maxRunningRequests: 1 }];
      await using setup = await setUp([], { engines, limits: { queueMs: 300 } }, 1);
      const clients = Array.from({ length: 4 }, () => new Client(setup.url, chatBytes()));
      await until("three are refused", () => clients.filter(({ status }) => status === 503).length === 3);
      for (const { text } of clients.filter(({ status }) => status > 0)) {
        assert.match(text, /^retry-after: [1-9]\d*\r$/im);
        assert.match(text, /"code":"queue_timeout"/);
      }
      for (const client of clients) client.leave();
    });
  });

  describe("31. full slots", () => {
    it("queue, first come first served, and never become a 502", async () => {
      const order: unknown[] = [];
      const running: Received[] = [];
      await using worker = await Worker.start((request) => {
        order.push(asked(request)["user"]);
        running.push(request);
      });
      const engines = [{ url: worker.url, maxRunningRequests: 3 }];
      await using setup = await setUp([], { engines }, 1);
      const clients: Client[] = [];
      for (let at = 0; at < 60; at++) {
        clients.push(new Client(setup.url, chatBytes({ user: at })));
        await until("it is known", () => order.length + setup.router.scheduler.depth.requests === at + 1);
      }
      for (let answered = 0; answered < 60; answered++) {
        await until("the slots are full again", () => running.length === Math.min(3, 60 - answered));
        running.shift()?.socket.write(answer());
      }
      await until("all are answered", () => clients.every(({ status }) => status > 0));
      assert.deepEqual([...new Set(clients.map(({ status }) => status))], [200]);
      assert.deepEqual(
        order,
        Array.from({ length: 60 }, (_, at) => at),
      );
    });

    it("are not needed all at once by a list of prompts, which so holds up nobody", async () => {
      const held: Received[] = [];
      await using worker = await Worker.start((request) => {
        if (asked(request)["user"] === "long") held.push(request);
        else request.socket.write(answer());
      });
      const engines = [{ url: worker.url, maxRunningRequests: 16 }];
      await using setup = await setUp([], { engines }, 1);
      const long = [1, 2, 3].map(() => new Client(setup.url, chatBytes({ user: "long" })));
      await until("three run", () => held.length === 3);
      const prompts = Array.from({ length: 50 }, (_, at) => `prompt ${at}`);
      const list = JSON.stringify({ model: MODEL, prompt: prompts, max_tokens: 1 });
      const batch = new Client(setup.url, post(list, "", "/v1/completions"));
      const small = Array.from({ length: 10 }, () => new Client(setup.url, chatBytes()));
      await until("all of these are answered", () => [batch, ...small].every(({ status }) => status === 200));
      assert.equal(held.length, 3);
      for (const client of [...long, batch, ...small]) client.leave();
    });

    for (const retryAfter of ["", "Retry-After: 1\r\n"]) {
      it(`that only the engine knows of (503${retryAfter === "" ? "" : ", Retry-After"}) queue as well`, async () => {
        let running = 0;
        let refused = 0;
        await using worker = await Worker.start(({ socket }) => {
          if (running === 2) {
            refused++;
            socket.write(json({ error: "all slots are taken" }, "503 Service Unavailable", retryAfter));
            return;
          }
          running++;
          setTimeout(() => {
            running--;
            socket.write(answer());
          }, 100);
        });
        await using setup = await setUp([], { engines: [worker.url] }, 1);
        const clients = Array.from({ length: 24 }, () => new Client(setup.url, chatBytes()));
        await until("all are answered", () => clients.every(({ status }) => status > 0));
        const statuses = clients.map(({ status }) => status);
        assert.deepEqual([...new Set(statuses)], [200], JSON.stringify(statuses));
        assert.ok(refused > 0);
        assert.ok(refused < 4 * clients.length, `asked in vain ${refused} times`);
      });
    }
  });

  describe("32. low priority under sustained high priority", () => {
    it("is overtaken by no request that comes later than its class allows", async () => {
      const served: string[] = [];
      const GUARANTEED = 0.05;
      await using worker = await Worker.start((request) => {
        served.push(String(asked(request)["user"]));
        setTimeout(() => request.socket.write(answer()), 10);
      });
      const key = (name: string, className: string) => ({
        name,
        hash: hashClientKey(`key-of-${name}`),
        class: className,
      });
      await using setup = await setUp(
        [],
        {
          engines: [{ url: worker.url, maxRunningRequests: 1 }],
          classes: { urgent: { priority: 1 }, patient: { priority: 0, guaranteedShare: GUARANTEED } },
          keys: [key("high", "urgent"), key("low", "patient")],
        },
        1,
      );
      const sentMs = new Map<string, number>();
      const send = (who: "high" | "low", name: string): Client => {
        sentMs.set(name, performance.now());
        const body = JSON.stringify({ model: MODEL, prompt: "x", max_tokens: 1, user: name });
        return new Client(setup.url, post(body, `Authorization: Bearer key-of-${who}\r\n`, "/v1/completions"));
      };
      let low: Client | null = null;
      /** The low one was waiting at this time at the latest. */
      let lowKnownMs = Number.POSITIVE_INFINITY;
      let sent = 0;
      // Four clients of high priority, each with its next request at once: one slot is never enough for them.
      await Promise.all(
        Array.from({ length: 4 }, async () => {
          while (low === null || low.status === 0) {
            const client = send("high", `high-${sent++}`);
            await client.sees((text) => text.includes("\r\n\r\n"));
            assert.equal(client.status, 200);
            client.leave();
            if (sent > 8) low ??= send("low", "low");
            const waits = setup.router.scheduler.waiting(0).some(({ className }) => className === "patient");
            if (waits) lowKnownMs = Math.min(lowKnownMs, performance.now());
            assert.ok(sent < 5000, "the low one starves");
          }
        }),
      );
      const overtook = served.slice(0, served.indexOf("low")).map((name) => sentMs.get(name) ?? 0);
      const after = overtook.filter((atMs) => atMs > lowKnownMs);
      assert.ok(after.length > 5, `${after.length} of high priority came later and went before it`);
      // All requests are of one size; those that wait with it count, and a few were known to be sent later than they came.
      assert.ok(after.length <= 1 / GUARANTEED + 8, `${after.length} of high priority went before it`);
    });
  });
});
