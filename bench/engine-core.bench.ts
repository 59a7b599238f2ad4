import { hardwareFor } from "#src/emulator/kvCapacity.ts";
import { EngineCore } from "#src/emulator/scheduler/engineCore.ts";

/**
 * How long the step scheduler takes for 12,000 long conversations' worth of work on 8 engines, under virtual time: the
 * speed limit of a simulator that drives it. Asserts its event counts. Run by hand: `node bench/engine-core.bench.ts`.
 */
const ENGINES = 8;
const REQUESTS_PER_ENGINE = 1500;
const PROMPT_BLOCKS = 750;
const SHARED_BLOCKS = 200;
const OUTPUT_TOKENS = 343;
const ARRIVAL_GAP_MS = 2000;

const { times, kvTokens } = hardwareFor("qwen3-32b", "h200");
let steps = 0;
let tokens = 0;
let busyMs = 0;
for (let engine = 0; engine < ENGINES; engine++) {
  const core = new EngineCore<number>({
    times,
    kvBlocks: Math.floor(kvTokens / 16),
    blockTokens: 16,
    maxRunning: 256,
    maxBatchedTokens: 8192,
    policy: "fcfs",
    prefixCaching: true,
    maxResidentAdapters: 1,
    adapterLoadMs: 0,
  });
  const prompts = Array.from({ length: REQUESTS_PER_ENGINE }, (_, request) =>
    BigUint64Array.from({ length: PROMPT_BLOCKS }, (_, block) =>
      BigInt(block < SHARED_BLOCKS ? block : (request + 1) * PROMPT_BLOCKS + block),
    ),
  );
  const startedMs = performance.now();
  let nowMs = 0;
  for (let next = 0; next < prompts.length || core.hasWork;) {
    for (let hashes = prompts[next]; hashes !== undefined && next * ARRIVAL_GAP_MS <= nowMs; hashes = prompts[++next]) {
      const spec = { promptTokens: PROMPT_BLOCKS * 16, outputTokens: OUTPUT_TOKENS, hashes };
      core.submit({ ...spec, adapter: null, priority: 0, readsCache: true, owner: next }, next * ARRIVAL_GAP_MS);
    }
    const outcome = core.step(nowMs);
    nowMs = outcome.tokens === 0 ? next * ARRIVAL_GAP_MS : nowMs + outcome.durationMs;
    tokens += outcome.emitted.length;
  }
  busyMs += performance.now() - startedMs;
  steps += core.counters.steps;
}
if (tokens !== ENGINES * REQUESTS_PER_ENGINE * OUTPUT_TOKENS) throw new Error(`wrong number of tokens: ${tokens}`);
process.stdout.write(
  `${ENGINES * REQUESTS_PER_ENGINE} requests, ${tokens} tokens, ${steps} steps in ${(busyMs / 1000).toFixed(1)} s: ` +
    `${((busyMs * 1000) / steps).toFixed(2)} µs a step\n`,
);
