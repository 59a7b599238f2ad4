import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { processTimers } from "#src/determinism/timers.ts";
import { examine, type Examination } from "#src/doctor/examine.ts";
import type { FindingId } from "#src/doctor/findings/catalogue.ts";
import { modelTokenizers } from "#src/doctor/modelTokenizers.ts";
import { createAskEngine } from "#src/engines/engineClient.ts";
import { zmqSockets } from "#src/engines/events/stream/zmqSockets.ts";
import { writeSmallTokenizer } from "../unit/emulator/smallTokenizer.ts";
import {
  configOf,
  emulatedTokenizer,
  endpointOf,
  fronted,
  healthy,
  SCENARIOS,
  temporaryFolder,
  type Scenario,
} from "./doctorScenarios.ts";

function look(scenario: Scenario, nonce: string | null = "never seen before"): Promise<Examination> {
  const { endpoints, wantedModels = [], tokenizers = emulatedTokenizer(), isSilent = false } = scenario;
  return examine(endpoints, wantedModels, {
    timers: processTimers,
    wallMs: Date.now,
    open: ({ url, apiKey }) => createAskEngine({ url, apiKey }),
    sockets: zmqSockets,
    tokenizers,
    limits: { eventMs: isSilent ? 400 : 10_000, probeMs: 10_000 },
    nonce,
  });
}

const idsOf = ({ findings }: Examination): FindingId[] => findings.map(({ id }) => id).sort();

describe("the doctor finds", () => {
  for (const [id, build] of Object.entries(SCENARIOS) as [FindingId, (typeof SCENARIOS)[FindingId]][]) {
    it(`${id}, and nothing that is not there`, async (t) => {
      const scenario = await build(t);
      const examination = await look(scenario);
      assert.deepEqual(idsOf(examination), [id, ...(scenario.also ?? [])].sort());
      const finding = examination.findings.find((one) => one.id === id);
      assert.ok(finding !== undefined && finding.message !== "" && finding.mend !== null);
    });
  }
});

describe("the doctor", () => {
  it("finds nothing in a fleet that is well, ranks and adapters included", async (t) => {
    const options = { adapters: ["a"], dataParallelRanks: 2, blockTokens: 32 };
    const engines = await Promise.all([healthy(t, options), healthy(t, options)]);
    assert.deepEqual(idsOf(await look({ endpoints: engines.map((engine) => endpointOf(engine)) })), []);
    // One short prompt, twice, for one token; the second time it was there.
    for (const engine of engines) {
      const { submitted, generatedTokens, requests } = engine.stats();
      assert.deepEqual([submitted, generatedTokens], [2, 2]);
      assert.deepEqual(
        requests.map(({ cachedTokens }) => cachedTokens > 0),
        [false, true],
      );
      assert.ok(requests.every(({ promptTokens }) => promptTokens < 200));
    }
  });

  it("finds nothing where engine and router have the same tokenizer folder", async (t) => {
    const folder = await writeSmallTokenizer(await temporaryFolder(t));
    const engine = await healthy(t, { tokenizer: folder });
    const tokenizers = modelTokenizers(configOf(engine, folder).models);
    const examination = await look({ endpoints: [endpointOf(engine)], tokenizers });
    assert.deepEqual(idsOf(examination), []);
    const [sighting] = examination.sightings;
    assert.ok(sighting?.kind === "seen" && sighting.tokens.prompt !== null && sighting.tokens.chat !== null);
  });

  it("leaves events to the router that only one can have", async (t) => {
    const engine = await healthy(t);
    const common = { replayEndpoint: null, topic: "" };
    for (const kvEvents of [
      { ...common, endpoint: "pull" },
      { ...common, endpoint: "tcp://*:5557", bind: true },
    ]) {
      assert.deepEqual(idsOf(await look({ endpoints: [endpointOf(engine, { kvEvents })] })), []);
    }
  });

  it("generates nothing where it must not", async (t) => {
    const engine = await healthy(t, { reportsCachedTokens: false });
    assert.deepEqual(idsOf(await look({ endpoints: [endpointOf(engine)] }, null)), []);
    assert.equal(engine.stats().submitted, 0);
  });

  it("waits for an engine that takes long to tell its configuration", async (t) => {
    const engine = await healthy(t);
    const url = await fronted(t, engine, { "/server_info?config_format=json": { delayMs: 600 } });
    const examination = await examine([endpointOf({ url })], [], {
      timers: processTimers,
      wallMs: Date.now,
      open: ({ url, apiKey }) => createAskEngine({ url, apiKey, timeouts: { connectMs: 500, totalMs: 500 } }),
      sockets: zmqSockets,
      tokenizers: emulatedTokenizer(),
      limits: { eventMs: 10_000, probeMs: 10_000 },
      nonce: null,
    });
    assert.deepEqual(idsOf(examination), []);
  });

  it("looks at the rest where one engine never answers", async (t) => {
    const [stuck, well] = [await healthy(t), await healthy(t)];
    await stuck.faults.set({ hang: "all" });
    const examination = await examine([endpointOf(stuck), endpointOf(well)], [], {
      timers: processTimers,
      wallMs: Date.now,
      open: ({ url, apiKey }) => createAskEngine({ url, apiKey, timeouts: { connectMs: 200, totalMs: 200 } }),
      sockets: zmqSockets,
      tokenizers: emulatedTokenizer(),
      limits: { eventMs: 10_000, probeMs: 10_000 },
      nonce: "once more",
    });
    assert.deepEqual(idsOf(examination), ["engine_unreachable"]);
    assert.deepEqual(
      examination.sightings.map(({ kind }) => kind),
      ["unreachable", "seen"],
    );
  });
});
