import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { adapterOf, ADAPTERS } from "#src/engines/adapters.ts";
import { detectEngine } from "#src/engines/detectEngine.ts";
import { MissingFacts } from "#src/engines/missingFacts.ts";
import type { Fact } from "#src/engines/vocabulary.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { always, recordedEngine, refuses, type RecordedEngine } from "./recordedEngine.ts";

const SUBJECTS = [
  { kind: "vllm", metricsPath: "/metrics", engine: () => recordedEngine("vllm-0.32.0") },
  { kind: "sglang", metricsPath: "/metrics", engine: () => recordedEngine("sglang") },
  {
    kind: "trtllm",
    metricsPath: "/prometheus/metrics",
    engine: () => recordedEngine("trtllm", "/prometheus/metrics"),
  },
  { kind: "llamacpp", metricsPath: "/metrics", engine: () => recordedEngine("llamacpp") },
] as const;

const NO_ENGINES = {
  "a web server": always(200, "<!doctype html><title>hello</title>"),
  "an empty list everywhere": always(200, "[]"),
  "an empty object everywhere": always(200, "{}"),
  "null everywhere": always(200, "null"),
  "nothing anywhere": always(404, "not found"),
  "an error everywhere": always(500, "oops"),
};

const isEngineFailure = (code: string) => (error: unknown) => error instanceof RouterError && error.code === code;

for (const { kind, metricsPath, engine } of SUBJECTS) {
  const adapter = adapterOf(kind);

  describe(`engine adapter ${kind}`, () => {
    it("recognises its own engine", async () => {
      const profile = await adapter.probe(engine().ask);
      assert.equal(profile?.kind, kind);
      assert.notEqual(profile.version, null);
      assert.ok(profile.dataParallelRanks >= 1);
      assert.ok(profile.models.length > 0);
    });

    it("takes no other engine for its own", async () => {
      for (const other of SUBJECTS.filter((subject) => subject.kind !== kind)) {
        assert.equal(await adapter.probe(other.engine().ask), null, `took ${other.kind} for ${kind}`);
      }
    });

    for (const [name, ask] of Object.entries(NO_ENGINES)) {
      it(`does not take ${name} for an engine, nor throw`, async () => {
        assert.equal(await adapter.probe(ask), null);
      });
    }

    it("says so when nobody answers", async () => {
      for (const question of ["probe", "health", "models", "scrape"] as const) {
        await assert.rejects(() => adapter[question](refuses), isEngineFailure("engine_unreachable"), question);
      }
    });

    it("is found by detection, with or without a wrong hint, asking no route twice", async () => {
      for (const hint of [null, ...SUBJECTS.map((subject) => subject.kind)]) {
        const subject = engine();
        const detected = await detectEngine(subject.ask, hint);
        assert.equal(detected?.adapter, adapter);
        assert.equal(new Set(subject.asked).size, subject.asked.length);
        assert.ok(subject.asked.length <= 9, `${subject.asked.length} questions`);
      }
    });

    it("tells health", async () => {
      assert.equal(await adapter.health(engine().ask), "ready");
      assert.equal(await adapter.health(always(503, "")), "unready");
      assert.equal(await adapter.health(always(500, "x")), "unready");
    });

    it("lists models, and refuses a list that is none", async () => {
      const models = await adapter.models(engine().ask);
      const ids = new Set(models.map((model) => model.id));
      assert.equal(ids.size, models.length);
      for (const { parent } of models) assert.ok(parent === null || ids.has(parent));
      for (const [name, ask] of Object.entries(NO_ENGINES)) {
        await assert.rejects(() => adapter.models(ask), isEngineFailure("engine_failed"), name);
      }
    });

    it("reads its metrics whole", async () => {
      const { byRank, missing } = await adapter.scrape(engine().ask);
      assert.deepEqual(missing, []);
      assert.deepEqual(
        [...byRank.keys()].sort((a, b) => a - b),
        Array.from({ length: byRank.size }, (_, rank) => rank),
      );
      for (const metrics of byRank.values()) {
        assert.notEqual(metrics.runningRequests, null);
        assert.notEqual(metrics.waitingRequests, null);
        assert.ok(metrics.kvUsage === null || (metrics.kvUsage >= 0 && metrics.kvUsage <= 1));
      }
    });

    it("fails where its metrics cannot be read by any way", async () => {
      for (const name of ["nothing anywhere", "an error everywhere"] as const) {
        await assert.rejects(() => adapter.scrape(NO_ENGINES[name]), isEngineFailure("engine_failed"), name);
      }
    });

    it("reports each metric that is renamed, and never as a zero", async () => {
      const before = await adapter.scrape(engine().ask);
      const published = factsOf(before.byRank.values().next().value ?? {});
      for (const fact of published) {
        const sources = adapter.factSources[fact] ?? [];
        assert.ok(sources.length > 0, `${fact} names no source`);
        const subject = engine();
        rename(subject, metricsPath, sources);
        const after = await adapter.scrape(subject.ask);
        for (const metrics of after.byRank.values()) assert.equal(metrics[fact], null, fact);
        const tracker = new MissingFacts(adapter.factSources);
        assert.deepEqual(tracker.changed(tracker.observe(before)), null);
        const reported = tracker.changed(tracker.observe(after)) ?? [];
        assert.deepEqual(reported.find((missing) => missing.fact === fact)?.lookedFor, sources);
      }
      assert.ok(published.length >= 4);
    });

    it("survives metrics that end anywhere", async () => {
      const text = engine().body(metricsPath);
      await fc.assert(
        fc.asyncProperty(fc.nat(text.length), async (end) => {
          const subject = engine();
          subject.set(metricsPath, { body: text.slice(0, end) });
          const { byRank } = await adapter.scrape(subject.ask);
          for (const metrics of byRank.values()) {
            assert.ok(metrics.runningRequests === null || Number.isFinite(metrics.runningRequests));
          }
        }),
        { numRuns: 30 },
      );
    });

    it("names headers in lower case", () => {
      const [rankName] = adapter.rankHeader(3) ?? [""];
      for (const name of [rankName, adapter.requestIdHeader ?? ""]) assert.equal(name, name.toLowerCase());
      assert.equal(adapter.adapterByModelName, adapter.modelNameFor("base", "adapter") !== null);
    });
  });
}

it("the contract runs over every adapter", () => {
  assert.deepEqual(ADAPTERS.map((adapter) => adapter.kind).sort(), SUBJECTS.map((subject) => subject.kind).sort());
});

function factsOf(metrics: object): Fact[] {
  return Object.entries(metrics).flatMap(([fact, value]) => (value === null ? [] : [fact as Fact]));
}

/** As a new release of the engine would: every name under which the fact is looked for is another one now. */
function rename(subject: RecordedEngine, path: string, sources: readonly string[]): void {
  let body = subject.body(path);
  for (const source of sources) {
    const [name = "", labels = ""] = source.split(/[{}]/);
    if (labels === "") body = body.replaceAll(name, name.replace(/[:_]/, "$&renamed_"));
    for (const label of labels.split(",").filter((each) => each !== "")) {
      body = body.replaceAll(new RegExp(`(?<=[{,])${label}=`, "g"), `renamed_${label}=`);
    }
  }
  subject.set(path, { body });
}
