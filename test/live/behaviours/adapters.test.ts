// Behaviour 33: LoRA adapters.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { chat, FAST, setUp, until } from "../gatewaySetup.ts";
import { answer, asked, Worker } from "./worker.ts";

async function outcome(response: Response): Promise<[number, string | null]> {
  const { error } = (await response.json()) as { error?: { code: string } };
  return [response.status, error?.code ?? null];
}

describe("33. an adapter", () => {
  it("is asked for where it is; 404 only when nobody has it, not when its holder is away", async () => {
    const good = async (): Promise<Worker> => Worker.start(({ socket }) => void socket.write(answer()));
    await using first = await good();
    await using second = await good();
    await using bare = await good();
    first.probed.adapters = ["sql", "both"];
    second.probed.adapters = ["legal", "both"];
    const engines = [first.url, second.url, bare.url];
    await using setup = await setUp([], { engines, limits: { queueMs: 500 } }, 3);
    for (let at = 0; at < 12; at++) {
      assert.equal((await chat(setup.url, { model: "sql" })).headers.get("x-kvasir-replica"), first.id);
      assert.equal((await chat(setup.url, { model: "legal" })).headers.get("x-kvasir-replica"), second.id);
      const either = (await chat(setup.url, { model: "both" })).headers.get("x-kvasir-replica") ?? "";
      assert.ok([first.id, second.id].includes(either));
      assert.deepEqual(await outcome(await chat(setup.url, { model: "nobody's" })), [404, "model_not_found"]);
    }
    assert.equal(bare.requests.length, 0);
    assert.ok(first.requests.every((request) => ["sql", "both"].includes(String(asked(request)["model"]))));

    first.probed.health = "unready";
    await until("its holder is away", () => setup.router.fleet.byId(first.id)?.lifecycle.state === "loading");
    assert.deepEqual(await outcome(await chat(setup.url, { model: "sql" })), [503, "no_replica_available"]);
    assert.equal((await chat(setup.url, { model: "both" })).headers.get("x-kvasir-replica"), second.id);
    assert.equal((await chat(setup.url, {})).status, 200);
  });

  it("that is not known yet, because an engine was not asked yet, is a 503 and no 404", async () => {
    await using silent = await Worker.start(({ socket }) => void socket.write(answer()));
    silent.probed.adapters = ["late"];
    silent.probed.silent = true;
    await using known = await Worker.start(({ socket }) => void socket.write(answer()));
    await using setup = await setUp([], { engines: [known.url, silent.url] }, 1);
    const early = await outcome(await chat(setup.url, { model: "late" }));
    assert.equal(early[0], 503, JSON.stringify(early));
    silent.probed.silent = false;
    await until("it is found", async () => (await chat(setup.url, { model: "late" })).status === 200);
  });

  it("in memory is preferred to one that must be loaded, and many adapters settle down to one home each", async () => {
    const names = Array.from({ length: 6 }, (_, at) => `adapter-${at}`);
    const options = { ...FAST, adapters: names, maxResidentAdapters: 2, adapterLoadMs: 50 };
    const engines = await Promise.all(Array.from({ length: 3 }, () => startEmulatedEngine(options)));
    try {
      // So dear that nothing which a busy machine makes slow outweighs it.
      const policy = { name: "kvasir" as const, options: { adapterLoadMs: 600_000 } };
      await using setup = await setUp([], { engines: engines.map(({ url }) => url), policy }, 3);
      const homes = new Map<string, Set<string>>();
      for (let round = 0; round < 5; round++) {
        for (const model of names) {
          const response = await chat(setup.url, { model, max_tokens: 2 });
          assert.equal(response.status, 200);
          await response.text();
          if (round === 0) homes.set(model, new Set());
          homes.get(model)?.add(response.headers.get("x-kvasir-replica") ?? "");
        }
      }
      // Six adapters fit exactly into three times two places: each stays where it was loaded first.
      assert.deepEqual(
        [...homes.values()].map(({ size }) => size),
        names.map(() => 1),
      );
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  });
});
