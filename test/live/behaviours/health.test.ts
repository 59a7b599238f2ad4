// Behaviours 10 to 13 and 15: who is blamed, left alone, tried again and never given up.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RunningRouter } from "#src/gateway/router.ts";
import { chunk, json, STREAM_HEAD, type Received } from "../dispatchRig.ts";
import { chat, setUp, until } from "../gatewaySetup.ts";
import { leftOver, metric } from "./books.ts";
import { chatBytes, Client } from "./client.ts";
import { answer, stream, token, Worker } from "./worker.ts";

function stateOf(router: RunningRouter, id: string): string {
  return router.fleet.byId(id)?.lifecycle.state ?? "gone";
}

describe("the health of replicas", { concurrency: true }, () => {
  describe("10. an engine's refusals", () => {
    it("that are the client's fault, 70 in a row, open no breaker and are not retried", async () => {
      const statuses = [
        "400 Bad Request",
        "422 Unprocessable Entity",
        "404 Not Found",
        "413 Payload Too Large",
        "409 Conflict",
      ];
      let nth = 0;
      const script = ({ socket }: Received): boolean =>
        socket.write(json({ error: { message: "no" } }, statuses[nth++ % statuses.length]));
      await using one = await Worker.start(script);
      await using other = await Worker.start(script);
      await using setup = await setUp([], { engines: [one.url, other.url], policy: "round-robin" }, 2);
      for (let at = 0; at < 70; at++) {
        const response = await chat(setup.url, {});
        assert.equal(response.status, Number(statuses[at % statuses.length]?.slice(0, 3)));
        assert.equal(await response.text(), `{"error":{"message":"no"}}`);
      }
      assert.deepEqual([one.requests.length, other.requests.length], [35, 35]);
      for (const { lifecycle } of setup.router.fleet.replicas())
        assert.deepEqual([lifecycle.state, lifecycle.state === "ready" && lifecycle.failures], ["ready", 0]);
    });

    for (const status of ["429 Too Many Requests", "503 Service Unavailable"]) {
      it(`${status} are back-pressure: the replica is left alone as long as it asked, and not blamed`, async () => {
        let busy = true;
        await using one = await Worker.start(({ socket }) => {
          socket.write(busy ? json({}, status, "Retry-After: 1\r\n") : answer());
        });
        await using other = await Worker.start(({ socket }) => void socket.write(answer()));
        await using setup = await setUp([], { engines: [one.url, other.url], policy: "round-robin" }, 2);
        await until(
          "the first has been asked",
          async () => (await chat(setup.url, {})).ok && one.requests.length === 1,
        );
        busy = false;
        const heldUntilMs = setup.router.fleet.byId(one.id)!.health.heldUntilMs;
        while (one.requests.length === 1) assert.equal((await chat(setup.url, {})).status, 200);
        assert.ok(performance.now() >= heldUntilMs, "it was asked again only after the time it named");
        const { lifecycle } = setup.router.fleet.byId(one.id)!;
        assert.deepEqual([lifecycle.state, lifecycle.state === "ready" && lifecycle.failures], ["ready", 0]);
      });
    }
  });

  describe("11. a replica that fails fast", { concurrency: true }, () => {
    const failures: Record<string, (request: Received) => void> = {
      "503 at once": ({ socket }) => void socket.write(json({}, "503 Service Unavailable")),
      "a reset": ({ socket }) => socket.resetAndDestroy(),
      "502 at once": ({ socket }) => void socket.write(json({}, "502 Bad Gateway")),
    };
    for (const policy of ["kvasir", "least-connections"] as const) {
      for (const [how, fail] of Object.entries(failures)) {
        it(`(${how}) does not attract ${policy}: it is quarantined, probed, and comes back`, async () => {
          let broken = true;
          await using fast = await Worker.start((request) => {
            if (broken) fail(request);
            else request.socket.write(answer());
          });
          await using slow = await Worker.start(({ socket }) => void setTimeout(() => socket.write(answer()), 8));
          await using setup = await setUp([], { engines: [fast.url, slow.url], policy }, 2);
          async function ask(times: number): Promise<void> {
            for (let at = 0; at < times; at++) assert.equal((await chat(setup.url, {})).status, 200);
          }
          await Promise.all([1, 2, 3, 4, 5].map(() => ask(40)));
          assert.ok(fast.requests.length >= 3 && fast.requests.length <= 20, `${fast.requests.length} of 200 met it`);
          broken = false;
          const before = fast.requests.length;
          await until("it was probed by requests and is back", async () => {
            await Promise.all([1, 2, 3, 4, 5].map(() => ask(2)));
            return fast.requests.length > before + 5 && stateOf(setup.router, fast.id) === "ready";
          });
        });
      }
    }
  });

  describe("12. a replica whose health route hangs", { concurrency: true }, () => {
    it("is alive while its tokens flow, and is not when nothing comes", async () => {
      const streaming = new Set<NodeJS.Timeout>();
      const flows = ({ socket }: Received): void => {
        socket.write(STREAM_HEAD);
        const timer = setInterval(() => socket.write(chunk(token())), 200);
        streaming.add(timer);
        socket.once("close", () => clearInterval(timer));
      };
      await using prefilling = await Worker.start(flows);
      await using dead = await Worker.start(() => {});
      await using setup = await setUp([], { engines: [prefilling.url, dead.url], policy: "round-robin" }, 2);
      const clients = Array.from(
        { length: 4 },
        () => new Client(setup.url, chatBytes({ stream: true, max_tokens: 999 })),
      );
      await until("both have requests", () => prefilling.requests.length === 2 && dead.requests.length === 2);
      prefilling.probed.health = "hangs";
      dead.probed.silent = true;
      const endMs = performance.now() + 40_000;
      while (stateOf(setup.router, dead.id) === "ready" && performance.now() < endMs)
        await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(stateOf(setup.router, dead.id), "unreachable");
      assert.equal(stateOf(setup.router, prefilling.id), "ready");
      await until("the dead one's requests are given to it", () => prefilling.requests.length === 4);
      await until("and answered", () => clients.every(({ text }) => text.includes("data:")));
      const more = Array.from({ length: 5 }, () => new Client(setup.url, chatBytes({ stream: true })));
      await until("all of the next go there", () => prefilling.requests.length === 9);
      for (const client of [...clients, ...more]) client.leave();
    });

    for (const [how, fail] of Object.entries({
      "500": ({ socket }: Received): void => void socket.write(json({}, "500 Internal Server Error")),
      "a closed connection": ({ socket }: Received): void => void socket.end(),
    })) {
      it(`or that fails (${how}) is never ejected if it is the last`, async () => {
        let broken = true;
        await using last = await Worker.start((request) => {
          if (broken) fail(request);
          else request.socket.write(answer());
        });
        await using setup = await setUp([], { engines: [last.url] }, 1);
        for (let at = 1; at <= 25; at++) {
          assert.ok((await chat(setup.url, {})).status >= 500);
          assert.equal(last.requests.length, at, "each request reaches it");
        }
        assert.equal(stateOf(setup.router, last.id), "quarantined");
        last.probed.health = "unready";
        const asked = last.probed.healthAsked;
        await until("its health route has said so", () => last.probed.healthAsked > asked + 1);
        broken = false;
        assert.equal((await chat(setup.url, {})).status, 200);
        assert.equal((await fetch(`${setup.url}/v1/models`)).status, 200);
      });
    }
  });

  describe("13. a replica that accepts and never answers", () => {
    it("harms nobody else: chats, model list, readiness, other engines' metrics", async () => {
      await using mute = await Worker.start(() => {});
      await using good = await Worker.start(({ socket, body }) => {
        socket.write(body.includes(`"stream":true`) ? stream(2) : answer());
      });
      await using neverIdentified = await Worker.start(() => {});
      neverIdentified.probed.silent = true;
      const engines = [mute.url, good.url, neverIdentified.url];
      await using setup = await setUp([], { engines, policy: "round-robin" }, 2);
      const stuck: Client[] = [];
      for (let at = 0; at < 10; at++) {
        const clients = [
          new Client(setup.url, chatBytes({ stream: at % 2 === 0 })),
          new Client(setup.url, chatBytes()),
        ];
        await until("one of two is answered, the other is stuck", () => mute.requests.length === at + 1);
        await until("the other is answered", () => clients.some(({ status }) => status === 200));
        stuck.push(...clients.filter(({ status }) => status === 0));
        const models = (await (await fetch(`${setup.url}/v1/models`)).json()) as { data: unknown[] };
        assert.equal(models.data.length, 1);
      }
      assert.equal(stuck.length, 10);
      mute.probed.silent = true;
      await until("the router is ready", async () => (await fetch(`${setup.url}/readyz`)).status === 200);
      good.probed.running = 7;
      await until("metrics of the other are read", async () => {
        return (await metric(setup, `kvasir_replica_requests_running{replica="${good.id}"}`)) === 7;
      });
      for (const client of stuck) client.leave();
      await until("nothing is left", async () => Object.keys(await leftOver(setup)).length === 0);
    });
  });

  describe("15. a replica that leaves between choice and first byte", () => {
    const silences: Record<string, (request: Received) => void> = {
      "nothing was sent": () => {},
      "headers were sent": ({ socket }) => void socket.write(STREAM_HEAD),
    };
    for (const [how, hold] of Object.entries(silences)) {
      it(`gives its requests to another (${how}), or fails them at once`, async () => {
        await using leaving = await Worker.start(hold);
        await using other = await Worker.start(({ socket }) => void socket.write(stream(2)));
        await using setup = await setUp([], {}, 0);
        const admin = `${setup.adminUrl}/replicas`;
        const add = (url: string): Promise<Response> =>
          fetch(admin, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ url }),
          });
        const remove = (id: string): Promise<Response> =>
          fetch(`${admin}/${encodeURIComponent(id)}`, { method: "DELETE" });
        const ready = (id: string): Promise<unknown> =>
          until(`${id} is ready`, () => stateOf(setup.router, id) === "ready");

        for (const otherIsThere of [true, false]) {
          await add(leaving.url);
          await ready(leaving.id);
          const before = leaving.requests.length;
          const clients = Array.from({ length: 7 }, () => new Client(setup.url, chatBytes({ stream: true })));
          await until("they are placed", () => leaving.requests.length === before + 7);
          if (otherIsThere) {
            await add(other.url);
            await ready(other.id);
          }
          assert.equal((await remove(leaving.id)).status, 200);
          await until("each has an answer", () => clients.every(({ text }) => /\[DONE\]|"error"/.test(text)));
          assert.deepEqual([...new Set(clients.map(({ status }) => status))], [otherIsThere ? 200 : 503]);
          assert.equal(clients.filter(({ text }) => text.includes("[DONE]")).length, otherIsThere ? 7 : 0);
          if (otherIsThere) await remove(other.id);
          for (const client of clients) client.leave();
        }
        assert.equal(other.requests.length, 7);
        await until("nothing is left", async () => Object.keys(await leftOver(setup)).length === 0);
      });
    }

    it("by a restart at the same address: its requests are placed again, there or elsewhere", async () => {
      let restarted = false;
      await using engine = await Worker.start(({ socket }) => {
        if (restarted) socket.write(stream(2));
      });
      await using setup = await setUp([], { engines: [engine.url] }, 1);
      const clients = Array.from({ length: 3 }, () => new Client(setup.url, chatBytes({ stream: true })));
      await until("they are placed", () => engine.requests.length === 3);
      restarted = true;
      engine.probed.startedAtSeconds += 60;
      await until("each has its answer or an error", () => clients.every(({ text }) => /\[DONE\]|"error"/.test(text)));
      for (const { status, text } of clients) assert.ok(status === 200 || /"retryable":true/.test(text), text);
      for (const client of clients) client.leave();
      await until("nothing is left", async () => Object.keys(await leftOver(setup)).length === 0);
    });
  });
});
