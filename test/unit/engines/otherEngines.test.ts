import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { llamacppAdapter } from "#src/engines/llamacpp/llamacppAdapter.ts";
import { sglangAdapter } from "#src/engines/sglang/sglangAdapter.ts";
import { readSglangMetrics } from "#src/engines/sglang/sglangMetrics.ts";
import { trtllmAdapter } from "#src/engines/trtllm/trtllmAdapter.ts";
import { always, recordedEngine, recordedText } from "./recordedEngine.ts";

describe("SGLang", () => {
  const engine = () => recordedEngine("sglang");

  it("gives its profile", async () => {
    const profile = await sglangAdapter.probe(engine().ask);
    assert.deepEqual(
      { ...profile, models: profile?.models.map((model) => model.id) },
      {
        kind: "sglang",
        version: "0.5.21",
        dataParallelRanks: 2,
        models: ["qwen3-32b", "sql"],
        maxRunningRequests: 512,
        kvCapacityTokens: 262_144,
        kvBlockTokens: 16,
        prefixCachingEnabled: true,
      },
    );
  });

  it("is found under its older route", async () => {
    const old = engine();
    old.set("/get_server_info", { body: old.body("/server_info") });
    old.set("/server_info", null);
    assert.equal((await sglangAdapter.probe(old.ask))?.kind, "sglang");
  });

  it("counts neither tensor-parallel ranks nor priorities twice", async () => {
    const { byRank } = await sglangAdapter.scrape(engine().ask);
    assert.deepEqual(
      [...byRank].map(([rank, metrics]) => [rank, metrics.runningRequests, metrics.waitingRequests, metrics.kvUsage]),
      [
        [0, 5, 2, 0.25],
        [1, 1, 0, 0.1],
      ],
    );
  });

  it("leaves shared counters out where ranks cannot be told apart, and sums their sources where there is one rank", () => {
    const text = recordedText("sglang/metrics.txt");
    assert.equal(readSglangMetrics(text)?.byRank.get(0)?.promptTokensTotal, null);
    const oneRank = text.replaceAll(/.*dp_rank="1".*\n/g, "").replaceAll(/,dp_rank="0"/g, "");
    const facts = readSglangMetrics(oneRank)?.byRank.get(0);
    assert.equal(facts?.promptTokensTotal, 12_000);
    assert.equal(facts.prefixHitTokensTotal, 4500);
    assert.equal(facts.runningRequests, 5);
  });

  it("falls back to its load route, and says what that lacks", async () => {
    const plain = engine();
    plain.set("/metrics", null);
    const { byRank, missing } = await sglangAdapter.scrape(plain.ask);
    assert.equal(byRank.get(0)?.runningRequests, 5);
    assert.equal(byRank.get(1)?.kvCapacityTokens, 262_144);
    assert.equal(byRank.get(1)?.maxRunningRequests, 512);
    assert.deepEqual(missing, ["promptTokensTotal", "generatedTokensTotal"]);
  });

  it("chooses an adapter by base and name", () => {
    assert.equal(sglangAdapter.modelNameFor("qwen3-32b", "sql"), "qwen3-32b:sql");
  });
});

describe("TensorRT-LLM", () => {
  const engine = () => recordedEngine("trtllm", "/prometheus/metrics");

  it("reads its Prometheus route without draining the other", async () => {
    const subject = engine();
    const { byRank } = await trtllmAdapter.scrape(subject.ask);
    assert.equal(byRank.get(0)?.kvCapacityTokens, 8192 * 32);
    assert.equal(byRank.get(0)?.prefixHitTokensTotal, 30_000);
    assert.deepEqual(subject.asked, ["/prometheus/metrics"]);
  });

  it("else reads the newest iteration, and says what that lacks", async () => {
    const subject = engine();
    subject.set("/prometheus/metrics", null);
    const { byRank, missing } = await trtllmAdapter.scrape(subject.ask);
    const facts = byRank.get(0);
    assert.deepEqual([facts?.runningRequests, facts?.waitingRequests, facts?.maxRunningRequests], [3, 1, 256]);
    assert.equal(facts?.kvUsage, 0.25);
    assert.deepEqual(missing, ["promptTokensTotal", "generatedTokensTotal"]);
  });

  it("has nothing new, rather than zeros, when its list was just drained", async () => {
    const subject = engine();
    subject.set("/prometheus/metrics", null);
    subject.set("/metrics", { body: "[]" });
    const { byRank, missing } = await trtllmAdapter.scrape(subject.ask);
    assert.equal(byRank.size, 0);
    assert.deepEqual(missing, []);
    assert.equal((await trtllmAdapter.probe(subject.ask))?.kind, "trtllm", "the model card still tells");
  });
});

describe("llama.cpp", () => {
  const engine = () => recordedEngine("llamacpp");

  it("gives its profile", async () => {
    const profile = await llamacppAdapter.probe(engine().ask);
    assert.equal(profile?.maxRunningRequests, 4);
    assert.equal(profile.kvCapacityTokens, 4 * 4096);
    assert.deepEqual(profile.models, [{ id: "stories", parent: null, maxModelTokens: 4096 }]);
  });

  it("is loading, not broken, while it loads", async () => {
    const loading = '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}';
    assert.equal(await llamacppAdapter.health(always(503, loading)), "loading");
    assert.equal(await llamacppAdapter.probe(always(503, loading)), null);
  });

  it("falls back to its slots, and says what they lack", async () => {
    const plain = engine();
    plain.set("/metrics", { status: 501, body: "" });
    const { byRank, missing } = await llamacppAdapter.scrape(plain.ask);
    assert.equal(byRank.get(0)?.runningRequests, 2);
    assert.equal(byRank.get(0)?.maxRunningRequests, 4);
    assert.deepEqual(missing, ["waitingRequests", "promptTokensTotal", "generatedTokensTotal"]);
  });
});
