// node bench/scheduler.bench.ts
// A request's whole way through the scheduler, and what telemetry costs beside it.
import { bench, run, summary } from "mitata";
import { SeededRandom } from "#src/determinism/random.ts";
import { Fleet } from "#src/fleet/fleet.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { createPolicy } from "#src/routing/createPolicy.ts";
import type { Decision } from "#src/routing/decision.ts";
import { Placement } from "#src/scheduler/placement.ts";
import { Scheduler } from "#src/scheduler/scheduler.ts";
import { observeInto } from "#src/scheduler/schedulerTelemetry.ts";
import { DecisionLog } from "#src/telemetry/decisionLog.ts";
import { Metrics } from "#src/telemetry/metrics.ts";
import { RequestLog } from "#src/telemetry/requestLog.ts";
import type { RequestRecord } from "#src/telemetry/requestRecord.ts";

const MODEL = "llama";
const BLOCK_TOKENS = 16;
const metrics = new Metrics();

function fleetOf(replicas: number): Fleet {
  const fleet = new Fleet();
  const names = Array.from({ length: replicas }, (_, at) => `10.0.0.${at}:8000`);
  fleet.applyEndpoints(
    "list",
    names.map((name) => ({
      url: `http://${name}`,
      name,
      engine: null,
      role: "mixed",
      labels: {},
      apiKey: null,
      dataParallelRanks: null,
      prior: null,
    })),
    0,
  );
  for (const name of names) {
    fleet.applyProfile(
      name,
      {
        kind: "vllm",
        version: null,
        dataParallelRanks: 1,
        models: [{ id: MODEL, parent: null, maxModelTokens: null }],
        maxRunningRequests: 256,
        kvCapacityTokens: 450_000,
        kvBlockTokens: BLOCK_TOKENS,
      },
      0,
    );
    fleet.applyHealth(name, "ready", 0);
  }
  return fleet;
}

/** Half of each prompt is one of a hundred shared prefixes. */
function requestOf(promptTokens: number, at: number): RouteRequest {
  const blocks = Math.floor(promptTokens / BLOCK_TOKENS);
  const hashes = BigUint64Array.from({ length: blocks }, (_, block) => {
    const owner = block < blocks / 2 ? at % 100 : 1_000 + at;
    return BigInt.asUintN(64, BigInt(owner * 100_003 + block + 1) * 0x9e3779b97f4a7c15n);
  });
  return {
    id: String(at).padStart(16, "0"),
    model: MODEL,
    adapter: null,
    identity: {
      hashes,
      blockTokens: BLOCK_TOKENS,
      promptTokens,
      promptBytes: promptTokens * 4,
      approximate: true,
      unhashable: null,
    },
    maxOutputTokens: 256,
    sequences: 1,
    session: null,
    tenant: "bench",
    className: "standard",
    arrivedMs: 0,
    deadlineMs: Number.POSITIVE_INFINITY,
    bodyBytes: promptTokens * 4,
    generates: true,
  };
}

summary(() => {
  for (const [replicas, promptTokens] of [
    [8, 500],
    [64, 500],
    [8, 12_000],
    [64, 12_000],
  ] as const) {
    const policy = createPolicy("kvasir");
    const scheduler = new Scheduler({
      fleet: fleetOf(replicas),
      random: new SeededRandom(1),
      policyFor: () => policy,
      observer: observeInto(metrics, new DecisionLog<Decision>()),
    });
    const requests = Array.from({ length: 2_000 }, (_, at) => requestOf(promptTokens, at));
    let nowMs = 0;
    let next = 0;
    bench(`submit to finish, ${replicas} replicas, ${promptTokens} tokens`, () => {
      nowMs += 1;
      scheduler.submit(requests[next++ % requests.length]!, nowMs, (result) => {
        if (!(result instanceof Placement)) throw result;
        scheduler.firstToken(result, nowMs + 0.3);
        scheduler.progress(result, 20, nowMs + 0.5);
        const usage = { promptTokens, cachedTokens: null, outputTokens: 20 };
        scheduler.finish(result, { kind: "answered", status: 200, usage }, nowMs + 0.9);
      });
    });
  }
});

const { interTokenLatency } = metrics.model(MODEL);
let gapMs = 0;
bench("inter-token latency, one event", () => {
  gapMs = (gapMs + 1.7) % 80;
  interTokenLatency.observe(gapMs);
});

const log = new RequestLog({ destination: "/dev/null" });
const record: RequestRecord = {
  requestId: "0123456789abcdef",
  decisionId: "d-1",
  kind: "request",
  method: "POST",
  path: "/v1/chat/completions",
  model: MODEL,
  adapter: null,
  tenant: "bench",
  className: "standard",
  replica: "10.0.0.1:8000",
  attempt: 1,
  status: 200,
  code: null,
  fault: null,
  streamed: true,
  bodyBytes: 2_048,
  ttftMs: 81.23,
  e2eMs: 900.1,
  queueMs: 0,
  promptTokens: 500,
  cachedTokensPredicted: 480,
  cachedTokensReported: 480,
  outputTokens: 60,
};
bench("log line of a request", async () => {
  log.request(record);
});

await run();
await log.close();
metrics.close();
