// Behaviours 26 to 29: where requests go.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { processClock, type Clock } from "#src/determinism/clock.ts";
import type { ConfigInput } from "#src/config/schema.ts";
import { post, type Received } from "../dispatchRig.ts";
import { chat, FAST, MODEL, setUp, until, type Setup } from "../gatewaySetup.ts";
import { leftOver, metric } from "./books.ts";
import { chatBytes, Client } from "./client.ts";
import { answer, asked, Worker } from "./worker.ts";

/** Workers that hold every request until they are told, and say truly how many they run. */
class HeldFleet {
  readonly workers: Worker[] = [];
  readonly held: Received[] = [];

  static async start(count: number): Promise<HeldFleet> {
    const fleet = new HeldFleet();
    for (let at = 0; at < count; at++) {
      const worker = await Worker.start((request) => {
        worker.probed.running++;
        fleet.held.push(request);
      });
      fleet.workers.push(worker);
    }
    return fleet;
  }

  get urls(): string[] {
    return this.workers.map(({ url }) => url);
  }

  /** Requests so far, by worker. */
  get counts(): number[] {
    return this.workers.map(({ requests }) => requests.length);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.workers) await worker[Symbol.asyncDispose]();
  }
}

/** The process clock, which a test can hold: what happens meanwhile happens at once, however slow the machine is. */
class HeldClock implements Clock {
  #behindMs = 0;
  #heldMs: number | null = null;

  nowMs(): number {
    return this.#heldMs ?? processClock.nowMs() - this.#behindMs;
  }

  hold(): void {
    this.#heldMs = this.nowMs();
  }

  go(): void {
    if (this.#heldMs !== null) this.#behindMs = processClock.nowMs() - this.#heldMs;
    this.#heldMs = null;
  }
}

/** Sends all at once, without waiting for any. */
function burst(
  setup: Setup,
  count: number,
  bytes: (at: number) => string = (at) => chatBytes({ user: `${at}` }),
): Client[] {
  return Array.from({ length: count }, (_, at) => new Client(setup.url, bytes(at)));
}

async function polled(setup: Setup, fleet: HeldFleet): Promise<void> {
  await until("all metrics were read", async () => {
    for (const { id, probed } of fleet.workers)
      if ((await metric(setup, `kvasir_replica_requests_running{replica="${id}"}`)) !== probed.running) return false;
    return true;
  });
}

describe("26. one prefix that everyone shares", () => {
  it("does not pin one replica: all take part, and the prefix is cached everywhere in the end", async () => {
    const engines = await Promise.all(
      Array.from({ length: 4 }, () => startEmulatedEngine({ ...FAST, timeScale: 0.3 })),
    );
    try {
      await using setup = await setUp([], { engines: engines.map(({ url }) => url) }, 4);
      const system = "You are a careful assistant of a large company. ".repeat(250);
      const replicas: string[] = [];
      await Promise.all(
        Array.from({ length: 48 }, async (_, client) => {
          for (let turn = 0; turn < 3; turn++) {
            const messages = [
              { role: "system", content: system },
              { role: "user", content: `Question ${turn} of ${client}` },
            ];
            const response = await chat(setup.url, { messages, stream: true, max_tokens: 40 });
            await response.text();
            replicas.push(response.headers.get("x-kvasir-replica") ?? "");
          }
        }),
      );
      const shares = engines.map(
        ({ url }) => replicas.filter((id) => id === new URL(url).host).length / replicas.length,
      );
      // Who waits for a prefix that is being computed and who computes it anew depends on when each arrives.
      for (const share of shares) assert.ok(share > 0 && share < 0.6, shares.join(" "));
      for (const engine of engines) assert.ok(engine.stats().prefixHitTokens > 3000);
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  });
});

describe("27. simultaneous requests between two polls", () => {
  for (const policy of ["kvasir", "least-connections"] as const) {
    for (const [requests, replicas] of [
      [8, 4],
      [8, 8],
      [21, 3],
    ] as const) {
      it(`spread: ${requests} over ${replicas} by ${policy}, and again after the poll has seen them`, async () => {
        await using fleet = await HeldFleet.start(replicas);
        const clock = new HeldClock();
        await using setup = await setUp([], { engines: fleet.urls, policy }, replicas, clock);
        clock.hold();
        const first = burst(setup, requests);
        await until("all arrived", () => fleet.held.length === requests);
        const even = requests / replicas;
        assert.deepEqual(
          fleet.counts,
          fleet.counts.map(() => even),
        );
        clock.go();
        await polled(setup, fleet);
        clock.hold();
        const second = burst(setup, requests);
        await until("all arrived", () => fleet.held.length === 2 * requests);
        assert.deepEqual(
          fleet.counts,
          fleet.counts.map(() => 2 * even),
        );
        for (const client of [...first, ...second]) client.leave();
      });
    }
  }

  it("go where the load that others have put there, as polled, is not", async () => {
    await using fleet = await HeldFleet.start(4);
    fleet.workers[2]!.probed.running = 200;
    fleet.workers[2]!.probed.waiting = 80;
    const clock = new HeldClock();
    await using setup = await setUp([], { engines: fleet.urls }, 4, clock);
    await polled(setup, fleet);
    clock.hold();
    const clients = burst(setup, 9);
    await until("all arrived", () => fleet.held.length === 9);
    assert.deepEqual(fleet.counts, [3, 3, 0, 3]);
    for (const client of clients) client.leave();
  });
});

describe("28. load", () => {
  const words = (at: number): string => `request ${at} `.repeat(13_000);
  const paths: Record<string, (at: number) => Record<string, unknown>> = {
    "/v1/chat/completions": (at) => ({ messages: [{ role: "user", content: words(at) }], max_tokens: 1 }),
    "/v1/completions": (at) => ({ prompt: words(at), max_tokens: 1, stream: true }),
    "/v1/responses": (at) => ({ input: words(at), max_output_tokens: 1 }),
    "/v1/messages": (at) => ({ messages: [{ role: "user", content: words(at) }], max_tokens: 1, stream: true }),
    "/generate": (at) => ({ text: words(at), sampling_params: { max_new_tokens: 1 } }),
    "/v1/embeddings": (at) => ({ input: words(at) }),
    "/v1/rerank": (at) => ({ query: "q", documents: [words(at)] }),
    "/tokenize": (at) => ({ prompt: words(at) }),
    "/some/path/of/its/own": (at) => ({ text: words(at) }),
  };

  it("counts from the moment of choice, on every path, for 32k tokens and one output token", async () => {
    await using fleet = await HeldFleet.start(4);
    await using setup = await setUp([], { engines: fleet.urls }, 4);
    for (const [path, fields] of Object.entries(paths)) {
      const before = fleet.counts;
      const clients = burst(setup, 8, (at) => post(JSON.stringify({ model: MODEL, ...fields(at) }), "", path));
      await until(`all of ${path} arrived`, () => fleet.held.length % 8 === 0 && fleet.held.length > 0);
      assert.deepEqual(
        fleet.counts.map((count, at) => count - before[at]!),
        [2, 2, 2, 2],
        path,
      );
      for (const { load } of setup.router.fleet.replicas()) {
        assert.equal(load.requests, 2, path);
        const tokens = load.pendingPrefillTokens + load.decodeKvTokens;
        assert.ok(tokens > 2 * 30_000, `${path}: ${tokens} tokens`);
        assert.ok(load.remainingOutputTokens <= 2 || path.includes("generate"), path);
      }
      for (const client of clients) client.leave();
      fleet.held.length = 0;
      for (const { probed } of fleet.workers) probed.running = 0;
      await until("nothing is left", async () => Object.keys(await leftOver(setup)).length === 0);
      await polled(setup, fleet);
    }
  });
});

describe("29. one hot replica", () => {
  it("does not switch affinity off for the others", async () => {
    const workers = await Promise.all(
      Array.from({ length: 4 }, () => Worker.start((request) => void request.socket.write(answer(usageOf(request))))),
    );
    try {
      const engines: ConfigInput["engines"] = workers.map(({ url }) => ({ url, maxRunningRequests: 64 }));
      await using setup = await setUp([], { engines }, 4);
      const histories = Array.from({ length: 24 }, (_, at) => [
        { role: "user", content: `Conversation ${at}: ${`words of ${at} `.repeat(600)}` },
      ]);
      async function turn(history: { role: string; content: string }[], at: number): Promise<string> {
        const response = await chat(setup.url, { messages: history });
        history.push({ role: "assistant", content: "word" }, { role: "user", content: `And then, ${at}?` });
        return response.headers.get("x-kvasir-replica") ?? "";
      }
      const homes = await Promise.all(histories.map((history) => turn(history, 0)));
      const [hot] = workers;
      hot!.probed.running = 64;
      hot!.probed.waiting = 300;
      hot!.probed.kvUsage = 0.99;
      await until("it is seen to be hot", async () => {
        return (await metric(setup, `kvasir_replica_requests_waiting{replica="${hot!.id}"}`)) === 300;
      });
      for (let at = 1; at <= 3; at++) {
        for (const [conversation, history] of histories.entries()) {
          const replica = await turn(history, at);
          if (homes[conversation] === hot!.id) assert.notEqual(replica, hot!.id, "nobody queues behind 300 others");
          else assert.equal(replica, homes[conversation], `conversation ${conversation}, turn ${at}`);
        }
        for (const [conversation, home] of homes.entries()) if (home === hot!.id) homes[conversation] = "";
        histories.splice(0, histories.length, ...histories.filter((_, conversation) => homes[conversation] !== ""));
        homes.splice(0, homes.length, ...homes.filter((home) => home !== ""));
      }
      assert.ok(histories.length > 10, "most conversations lived elsewhere");
    } finally {
      for (const worker of workers) await worker[Symbol.asyncDispose]();
    }
  });
});

/** As if everything but the last message were cached. */
function usageOf(request: Received): { prompt: number; cached: number; output: number } {
  const prompt = Math.round(JSON.stringify(asked(request)["messages"] ?? "").length / 4);
  return { prompt, cached: prompt, output: 8 };
}
