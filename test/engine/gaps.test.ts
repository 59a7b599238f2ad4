import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { engines } from "./engines.ts";
import { assertEqual, type Prompt } from "./indexEquality.ts";
import { LossyEvents } from "./lossyEvents.ts";
import { complete, TokenPrompts } from "./prompts.ts";
import { engineInput, resetCache, setUp, until, viewStates } from "./routerSetup.ts";
import { Truth } from "./truth.ts";

const [engine] = engines;

describe("events of a real engine that get lost", () => {
  it("are asked for again, and the index is whole", async () => {
    await using lossy = await LossyEvents.before(engine!);
    const input = engineInput(engine!);
    const kvEvents = { ...input.kvEvents, endpoint: lossy.address };
    await using setup = await setUp([engine!], { engines: [{ ...input, kvEvents }] });
    await using truth = await Truth.of(engine!);
    const make = new TokenPrompts(2);
    const prompts: Prompt[] = [];
    for (let at = 0; at < 12; at++) {
      if (at % 3 === 1) lossy.toLose = 1 + make.below(2);
      const prompt = { ids: make.ids(200 + make.below(200)), kind: {} };
      prompts.push(prompt);
      await complete(setup.url, prompt.ids, prompt.kind, 8);
    }
    // What is lost last shows with the next batch only.
    lossy.toLose = 0;
    await complete(setup.url, make.ids(100));
    await assertEqual(setup.router, [truth], prompts);
    assert.ok(lossy.lost >= 4, "events were lost");
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    const replays = Number(/kvasir_kv_events_replays_total\{[^}]*\} (\d+)/.exec(metrics)?.[1]);
    assert.ok(replays >= 4, `asked ${replays} times`);
    assert.match(metrics, /kvasir_kv_events_losses_total\{[^}]*\} 0/);
  });

  it("and cannot be repeated make the view unsure, which is said, until the engine holds nothing", async () => {
    await using lossy = await LossyEvents.before(engine!);
    const { replayEndpoint: _none, ...kvEvents } = { ...engineInput(engine!).kvEvents, endpoint: lossy.address };
    const engineWithout = { ...engineInput(engine!), kvEvents };
    await resetCache(engine!);
    await using setup = await setUp([engine!], { engines: [engineWithout] }, { live: false });
    const make = new TokenPrompts(3);
    // The reset is told with the first batch: from there on, all is known.
    const first = { ids: make.ids(300), kind: {} };
    await complete(setup.url, first.ids);
    await until("the view is live", () => viewStates(setup.router)[0] === "live");

    lossy.toLose = 1;
    await complete(setup.url, make.ids(300));
    await complete(setup.url, make.ids(300));
    await until("the view is unsure", () => viewStates(setup.router)[0] === "unsure");
    assert.ok(setup.router.fleet.conditions.list().some(({ key }) => key === "events_gap"));
    // What own traffic left is still used.
    const again = await complete(setup.url, first.ids);
    const [decision] = setup.router.decisions.recent(1);
    assert.ok(again.usage.prompt_tokens_details.cached_tokens >= 288);
    assert.ok(decision!.cachedTokens(0) >= 256, `predicted ${decision!.cachedTokens(0)}`);

    await resetCache(engine!);
    await complete(setup.url, make.ids(300));
    await until("the view is live again", () => viewStates(setup.router)[0] === "live");
    assert.ok(!setup.router.fleet.conditions.list().some(({ key }) => key === "events_gap"));
    await using truth = await Truth.of(engine!);
    await assertEqual(setup.router, [truth], [first]);
  });
});
