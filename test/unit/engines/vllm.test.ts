import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { vllmAdapter } from "#src/engines/vllm/vllmAdapter.ts";
import { readVllmMetrics } from "#src/engines/vllm/vllmMetrics.ts";
import { recordedEngine, recordedText } from "./recordedEngine.ts";

const METRICS = recordedText("vllm-0.32.0/metrics.txt");

describe("vLLM 0.32, recorded", () => {
  it("gives its profile", async () => {
    assert.deepEqual(await vllmAdapter.probe(recordedEngine("vllm-0.32.0").ask), {
      kind: "vllm",
      version: "0.32.0",
      dataParallelRanks: 1,
      models: [{ id: "tiny", parent: null, maxModelTokens: 1024 }],
      maxRunningRequests: null,
      kvCapacityTokens: 2048,
      kvBlockTokens: 32,
      prefixCachingEnabled: true,
    });
  });

  it("gives its metrics", () => {
    const { byRank, startedAtSeconds } = readVllmMetrics(METRICS);
    assert.deepEqual(byRank.get(0), {
      runningRequests: 0,
      waitingRequests: 0,
      kvUsage: 0,
      kvCapacityTokens: 2048,
      kvBlockTokens: 32,
      maxRunningRequests: null,
      prefixQueriedTokensTotal: 523,
      prefixHitTokensTotal: 192,
      preemptionsTotal: 0,
      promptTokensTotal: 534,
      generatedTokensTotal: 158,
      residentAdapters: null,
      maxResidentAdapters: null,
      draftTokensTotal: null,
      acceptedDraftTokensTotal: null,
      prefixCachingEnabled: true,
      asleep: false,
    });
    assert.equal(startedAtSeconds, 1.79600620067e9);
  });

  it("lists adapters with their base", async () => {
    const models = await vllmAdapter.models(recordedEngine("vllm-0.32.0-lora").ask);
    assert.deepEqual(
      models.map(({ id, parent }) => [id, parent]),
      [
        ["target", null],
        ["lora-a", "target"],
        ["lora-b", "target"],
      ],
    );
  });

  it("believes only the newest sample of the adapters", () => {
    const { byRank } = readVllmMetrics(METRICS + recordedText("vllm-0.32.0-lora/metrics.txt"));
    assert.deepEqual(byRank.get(0)?.residentAdapters, ["lora-a"]);
    assert.equal(byRank.get(0)?.maxResidentAdapters, 1);
  });
});

describe("vLLM's dialect", () => {
  it("knows an older release by its older names", () => {
    const old = METRICS.replaceAll("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
      .replaceAll("vllm:prefix_cache_", "vllm:gpu_prefix_cache_")
      .replaceAll(/kv_cache_size_tokens="\d+",/g, "");
    const { byRank, missing } = readVllmMetrics(old);
    assert.deepEqual(missing, []);
    assert.equal(byRank.get(0)?.kvUsage, 0);
    assert.equal(byRank.get(0)?.prefixHitTokensTotal, 192);
    assert.equal(byRank.get(0)?.kvCapacityTokens, 64 * 32);
  });

  it("takes the new name where both are published", () => {
    const both = METRICS + 'vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.9\n';
    assert.equal(readVllmMetrics(both).byRank.get(0)?.kvUsage, 0);
  });

  it('reads "None" as not known, and says so', () => {
    const unsized = METRICS.replaceAll(/(num_gpu_blocks|kv_cache_size_tokens)="\d+"/g, '$1="None"');
    const { byRank, missing } = readVllmMetrics(unsized);
    assert.equal(byRank.get(0)?.kvCapacityTokens, null);
    assert.equal(byRank.get(0)?.kvBlockTokens, 32);
    assert.deepEqual(missing, ["kvCapacityTokens"]);
  });

  it("keeps data-parallel ranks apart", () => {
    const second = METRICS.replaceAll('engine="0"', 'engine="1"').replace(
      /(num_requests_running\{[^}]*\}) 0.0/,
      "$1 7.0",
    );
    const { byRank } = readVllmMetrics(METRICS + second);
    assert.deepEqual([...byRank.keys()], [0, 1]);
    assert.equal(byRank.get(0)?.runningRequests, 0);
    assert.equal(byRank.get(1)?.runningRequests, 7);
    assert.equal(byRank.get(1)?.kvCapacityTokens, 2048);
  });

  it("numbers the one rank behind an external balancer 0", () => {
    assert.deepEqual([...readVllmMetrics(METRICS.replaceAll('engine="0"', 'engine="3"')).byRank.keys()], [0]);
  });

  it("sees that it sleeps", () => {
    const asleep = METRICS.replace(/(sleep_state="awake"\}) 1.0/, "$1 0.0");
    assert.equal(readVllmMetrics(asleep).byRank.get(0)?.asleep, true);
  });

  it("shows another block size and a prefix cache that is off (behaviour 23)", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    engine.set("/metrics", {
      body: METRICS.replaceAll(',block_size="32"', ',block_size="128"').replaceAll(
        'enable_prefix_caching="True"',
        'enable_prefix_caching="False"',
      ),
    });
    const profile = await vllmAdapter.probe(engine.ask);
    assert.equal(profile?.kvBlockTokens, 128);
    assert.equal(profile?.prefixCachingEnabled, false);
  });

  it("is recognised without statistics, and then misses every fact", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    engine.set("/metrics", { body: "# HELP python_info x\npython_info 1\n" });
    assert.equal((await vllmAdapter.probe(engine.ask))?.kind, "vllm");
    const { byRank, missing } = await vllmAdapter.scrape(engine.ask);
    assert.equal(byRank.size, 0);
    assert.ok(missing.includes("runningRequests"));
  });

  it("is recognised by its series when its models have another owner", async () => {
    const engine = recordedEngine("vllm-0.32.0");
    engine.set("/v1/models", { body: engine.body("/v1/models").replaceAll('"vllm"', '"our-team"') });
    assert.equal((await vllmAdapter.probe(engine.ask))?.kind, "vllm");
  });
});
