import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import type { EngineStats } from "#src/emulator/engineContext.ts";
import type { StepTimes } from "#src/hardware/stepTimes.ts";
import { mean } from "#src/simulator/report/distribution.ts";
import { run } from "#src/simulator/run.ts";
import { exponential } from "#src/simulator/workload/draws.ts";
import { arrival, engines, fixed, router, settings } from "../unit/simulator/harness.ts";
import { MODEL, setUp } from "../live/gatewaySetup.ts";

const TIMES: StepTimes = {
  prefillBaseMs: 5,
  prefillMsPerKtok: 100,
  prefillMsPerKtok2: 5,
  stepBaseMs: 10,
  stepMsPerSequence: 1,
  stepMsPerKtok: 0.2,
};
const ENGINE = { maxRunning: 4, maxBatchedTokens: 1_024 };
const KV_TOKENS = 32_000;
const REQUESTS = 36;
const MEAN_GAP_MS = 100;
/** For a machine that stalls: an engine that is late computes its next step with whoever came meanwhile. */
const WITHIN = 0.1;

async function send(url: string, seed: number, promptTokens: number, outputTokens: number): Promise<void> {
  const random = new SeededRandom(seed);
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: MODEL,
      prompt: Array.from({ length: promptTokens }, () => 1 + random.below(30_000)),
      max_tokens: outputTokens,
      stream: true,
    }),
  });
  assert.equal(response.status, 200);
  await response.text();
}

/** How long an engine's requests really took on its own clock, and how long the simulator says for the same arrivals. */
function compared({ requests }: EngineStats): { real: number[]; simulated: number[] }[] {
  const real = requests
    .map(({ times, promptTokens, outputTokens }) => ({ ...times!, promptTokens, outputTokens }))
    .sort((a, b) => a.arrivedMs - b.arrivedMs);
  const { world } = run(
    settings({
      model: MODEL,
      engines: engines(1, { ...ENGINE, times: TIMES, kvBlocks: KV_TOKENS / 16 }),
      router: router("round-robin", "immediate"),
      networkMs: 0,
    }),
    fixed(
      real.map(({ arrivedMs, promptTokens, outputTokens }) =>
        arrival(arrivedMs - real[0]!.arrivedMs, { promptTokens, outputTokens }),
      ),
    ),
  );
  return world.records.map(({ arrivedMs, scheduledMs, firstTokenMs, endedMs }, at) => {
    const one = real[at]!;
    return {
      real: [one.scheduledMs!, one.firstTokenMs!, one.finishedMs!].map((timeMs) => timeMs - one.arrivedMs),
      simulated: [scheduledMs, firstTokenMs, endedMs].map((timeMs) => timeMs - arrivedMs),
    };
  });
}

test("the simulator says how long emulated engines really take", async () => {
  await using setup = await setUp(
    [1, 2].map(() => ({ ...ENGINE, timeScale: 1, times: TIMES, kvTokens: KV_TOKENS })),
    { policy: "round-robin" },
  );
  const random = new SeededRandom(5);
  const underWay: Promise<void>[] = [];
  for (let at = 0; at < REQUESTS; at++) {
    underWay.push(send(setup.url, at, 200 + random.below(2_000), 5 + random.below(40)));
    await new Promise((resolve) => setTimeout(resolve, exponential(MEAN_GAP_MS, random)));
  }
  await Promise.all(underWay);

  const requests = setup.engines.flatMap((engine) => compared(engine.stats()));
  assert.equal(requests.length, REQUESTS);
  const [queueMs, ttftMs, e2eMs] = [0, 1, 2].map((what) => ({
    real: mean(requests.map((request) => request.real[what]!)),
    simulated: mean(requests.map((request) => request.simulated[what]!)),
  }));
  // Without waiting, little would be compared.
  assert.ok(queueMs!.real > 0.2 * ttftMs!.real, JSON.stringify({ queueMs, ttftMs }));
  for (const { real, simulated } of [ttftMs!, e2eMs!])
    assert.ok(Math.abs(simulated / real - 1) < WITHIN, JSON.stringify({ queueMs, ttftMs, e2eMs }));
  console.log(JSON.stringify({ queueMs, ttftMs, e2eMs }));
});
