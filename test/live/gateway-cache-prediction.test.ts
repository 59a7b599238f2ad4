import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { writeSmallTokenizer } from "../unit/emulator/smallTokenizer.ts";
import { FAST, MODEL, setUp, until, type Setup } from "./gatewaySetup.ts";

const BLOCK_TOKENS = 16;
const REQUESTS = 300;
/** Emulated time makes whoever was measured much faster than whoever was not. */
const SPREAD = { policy: "round-robin" } as const;
const WORDS = "the and for can see run add map use any all one two few new old big low top".split(" ");

interface Usage {
  readonly prompt_tokens_details?: { readonly cached_tokens?: number };
  readonly input_tokens_details?: { readonly cached_tokens?: number };
  readonly cache_read_input_tokens?: number;
}

async function ask(url: string, path: string, body: object): Promise<number> {
  const answer = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, ...body }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { usage = {} } = JSON.parse(text) as { usage?: Usage };
  const details = usage.prompt_tokens_details ?? usage.input_tokens_details;
  return details?.cached_tokens ?? usage.cache_read_input_tokens ?? 0;
}

/** Of all replicas together. */
async function total({ adminUrl }: Setup, name: string): Promise<number> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const each = metrics.matchAll(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, "gm"));
  return [...each].reduce((sum, [, value]) => sum + Number(value), 0);
}

async function allLive({ router }: Setup): Promise<void> {
  await until("all views are live", () =>
    router.fleet.replicas().every(({ index }) => router.fleet.index.view(index).state.state === "live"),
  );
}

/** Prompts that begin alike, some of them with another salt or as another adapter's, by every API. */
function* prompts(random: SeededRandom, stemCount: number): Generator<{ path: string; body: object }> {
  const words = (count: number): string =>
    Array.from({ length: count }, () => WORDS[random.below(WORDS.length)]!).join(" ");
  const stems = Array.from({ length: stemCount }, () => words(100 + random.below(400)));
  for (let at = 0; at < REQUESTS; at++) {
    const stem = stems[random.below(stems.length)]!;
    const content = `${stem.slice(0, 200 + random.below(stem.length))} ${words(random.below(60))}`;
    const more = random.below(6) === 0 ? { cache_salt: "tenant" } : {};
    const messages = [{ role: "user", content }];
    switch (random.below(4)) {
      case 0:
        yield { path: "/v1/chat/completions", body: { messages, max_tokens: 1 + random.below(40), ...more } };
        break;
      case 1:
        yield { path: "/v1/completions", body: { prompt: content, max_tokens: 1 + random.below(40), ...more } };
        break;
      case 2:
        yield { path: "/v1/responses", body: { input: content, max_output_tokens: 1 + random.below(40) } };
        break;
      default:
        yield { path: "/v1/messages", body: { messages, max_tokens: 1 + random.below(40) } };
    }
  }
}

describe("predicted cached tokens", () => {
  let folder: string;
  let tokenizer: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kvasir-prediction-"));
    tokenizer = await writeSmallTokenizer(join(folder, MODEL));
  });
  after(() => rm(folder, { recursive: true }));

  it("are what quiet engines report, to within a block, in 99 of 100 answers, also where caches overflow", async () => {
    const options = { tokenizer, kvEvents: {}, blockTokens: BLOCK_TOKENS, kvTokens: 6_000 };
    await using setup = await setUp([options, options, options], { ...SPREAD, models: { [MODEL]: { tokenizer } } });
    await allLive(setup);
    let [reportedTokens, off] = [0, 0];
    for (const { path, body } of prompts(new SeededRandom(5), 12)) {
      const reported = await ask(setup.url, path, body);
      const [decision] = setup.router.decisions.recent(1);
      reportedTokens += reported;
      if (Math.abs(decision!.cachedTokens(decision!.chosen) - reported) > BLOCK_TOKENS) off++;
    }
    assert.ok(reportedTokens > 50 * REQUESTS, `there was little to predict: ${reportedTokens} tokens`);
    assert.ok(off <= REQUESTS / 100, `${off} of ${REQUESTS} are off`);
    assert.equal(await total(setup, "kvasir_replica_cached_tokens_reported_total"), reportedTokens);
    assert.ok((await total(setup, "kvasir_replica_cached_tokens_error_total")) <= REQUESTS * BLOCK_TOKENS);
    const evictions = setup.router.fleet.replicas().map(({ index }) => setup.router.fleet.index.view(index).counts);
    assert.ok(evictions.every(({ removedBlocks }) => removedBlocks > 100));
    assert.equal(setup.router.fleet.conditions.has("cache_prediction_off", null), false);
  });

  it("raise an alarm where an engine is followed by another one's events", async () => {
    const start = (): Promise<EmulatedEngine> =>
      startEmulatedEngine({ ...FAST, tokenizer, kvEvents: {}, kvTokens: 6_000 });
    const engines = [await start(), await start()];
    try {
      const addresses = engines.map(({ kvEvents }) => kvEvents!).reverse();
      const input = engines.map(({ url }, at) => ({
        url,
        kvEvents: { endpoint: addresses[at]!.events, replayEndpoint: addresses[at]!.replay ?? undefined },
      }));
      await using setup = await setUp([], { ...SPREAD, engines: input, models: { [MODEL]: { tokenizer } } }, 2);
      await allLive(setup);
      for (const { path, body } of prompts(new SeededRandom(6), 40)) await ask(setup.url, path, body);
      await until("both predictions are off", async () => {
        const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
        return metrics.match(/^kvasir_condition\{[^}]*cache_prediction_off[^}]*\} 1$/gm)?.length === 2;
      });
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  });
});
