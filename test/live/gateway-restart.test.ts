import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { FAST, MODEL, setUp, until, type Setup } from "./gatewaySetup.ts";

const PROMPTS = 60;
const PROMPT_TOKENS = 320;

interface Answer {
  readonly replica: string;
  readonly cachedTokens: number;
}

async function ask({ url }: Setup, number: number, more: number): Promise<Answer> {
  const prompt = Array.from({ length: PROMPT_TOKENS + more }, (_, at) => 10_000 * number + at);
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, prompt, max_tokens: 1 }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { usage } = JSON.parse(text) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
  const cachedTokens = usage.prompt_tokens_details.cached_tokens;
  return { replica: answer.headers.get("x-kvasir-replica") ?? "", cachedTokens };
}

async function router(engines: readonly EmulatedEngine[], policy: "kvasir" | "round-robin"): Promise<Setup> {
  const inputs = engines.map(({ url, kvEvents }) => ({
    url,
    kvEvents: { endpoint: kvEvents!.events, replayEndpoint: kvEvents!.replay ?? undefined },
  }));
  const setup = await setUp([], { engines: inputs, policy }, engines.length);
  await until("it is ready", async () => (await fetch(`${setup.url}/readyz`)).ok);
  return setup;
}

/** Prompts spread by one router and asked again of the next: of the last so many, how many were hits where they had been. */
async function restarted(bufferSteps: number, last: number): Promise<{ hits: number; states: string[] }> {
  const engines = await Promise.all([0, 1].map(() => startEmulatedEngine({ ...FAST, kvEvents: { bufferSteps } })));
  try {
    const placed: string[] = [];
    {
      await using before = await router(engines, "round-robin");
      for (let number = 0; number < PROMPTS; number++) placed.push((await ask(before, number, 0)).replica);
    }
    assert.equal(new Set(placed).size, 2);
    await using after = await router(engines, "kvasir");
    assert.ok(after.logged.some(({ msg }) => msg === "what the engines hold is known"));
    const states = after.router.fleet.replicas().map(({ index }) => after.router.fleet.index.view(index).state.state);
    let hits = 0;
    for (let number = PROMPTS - last; number < PROMPTS; number++) {
      const { replica, cachedTokens } = await ask(after, number, 1);
      const [decision] = after.router.decisions.recent(1);
      assert.equal(decision!.cachedTokens(decision!.chosen), cachedTokens, "it is predicted as it comes");
      hits += Number(replica === placed[number] && cachedTokens === PROMPT_TOKENS);
    }
    return { hits, states };
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
  }
}

describe("a router that is started again", () => {
  it("loses no hit where the engines can repeat everything", async () => {
    assert.deepEqual(await restarted(10_000, PROMPTS), { hits: PROMPTS, states: ["live", "live"] });
  });

  it("loses none within what they can repeat, and says that there may be more", async () => {
    // Each prompt is one batch, and every other one went to the same engine.
    assert.deepEqual(await restarted(10, 20), { hits: 20, states: ["unsure", "unsure"] });
  });
});
