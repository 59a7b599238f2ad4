import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { engines } from "./engines.ts";
import { metricOf } from "./engineMetrics.ts";
import { complete, TokenPrompts } from "./prompts.ts";
import { setUp, until, type Setup } from "./routerSetup.ts";

const [engine] = engines;

/** What the engine itself counts. It has no counter of aborts: an aborted request is one that never finished. */
async function counted(): Promise<{ unfinished: number; finished: number; generated: number }> {
  return {
    unfinished:
      (await metricOf(engine!, "vllm:num_requests_running")) + (await metricOf(engine!, "vllm:num_requests_waiting")),
    finished: await metricOf(engine!, "vllm:request_success_total"),
    generated: await metricOf(engine!, "vllm:generation_tokens_total"),
  };
}

function start(setup: Setup, body: object): { readonly answer: Promise<Response>; readonly leave: () => void } {
  const leaving = new AbortController();
  const answer = fetch(`${setup.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "target", stream: true, ignore_eos: true, temperature: 0, ...body }),
    signal: leaving.signal,
  });
  answer.catch(() => undefined);
  return { answer, leave: () => leaving.abort() };
}

async function assertNothingLeft(setup: Setup): Promise<void> {
  await until("the engine has nothing to do", async () => (await counted()).unfinished === 0, 5000);
  await until("nothing is in flight", () => setup.router.scheduler.inFlight === 0, 5000);
  const [replica] = setup.router.fleet.replicas();
  assert.equal(replica!.load.requests, 0);
  assert.equal(replica!.lifecycle.state, "ready", "the replica is not blamed");
}

describe("a client that leaves", () => {
  it("in the middle of a stream ends the engine's work", async () => {
    await using setup = await setUp([engine!]);
    const before = await counted();
    const { answer, leave } = start(setup, { prompt: new TokenPrompts(4).ids(100), max_tokens: 3000 });
    const reader = (await answer).body!.getReader();
    await reader.read();
    leave();
    await assertNothingLeft(setup);
    const after = await counted();
    assert.equal(after.finished, before.finished);
    assert.ok(after.generated > before.generated, "it had begun");
    assert.ok(after.generated - before.generated < 2500, "it was not generated to its end");
  });

  it("while prompts are computed, or wait for it, ends the engine's work", async () => {
    await using setup = await setUp([engine!]);
    const before = await counted();
    const make = new TokenPrompts(5);
    const calls = Array.from({ length: 6 }, () => start(setup, { prompt: make.ids(4000), max_tokens: 90 }));
    await until("the engine has them", async () => (await counted()).unfinished >= 4);
    for (const { leave } of calls) leave();
    await assertNothingLeft(setup);
    const after = await counted();
    assert.ok(after.finished - before.finished <= 2, "they did not finish");
    assert.ok(after.generated - before.generated < 300, "they were not answered");
    assert.equal((await complete(setup.url, make.ids(50))).usage.prompt_tokens, 50);
  });
});
