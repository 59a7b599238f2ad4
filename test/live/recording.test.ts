import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { configFrom } from "#src/config/loadConfig.ts";
import { startEmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { recordedSettings } from "#src/gateway/recordedSettings.ts";
import { Recording } from "#src/recording/read/recording.ts";
import { Replay, type ReplayOptions, type ReplayReport } from "#src/recording/replay/replay.ts";
import type { Decision } from "#src/routing/decision.ts";
import { explain } from "#src/routing/explain.ts";
import { Placement } from "#src/scheduler/placement.ts";
import { chat, FAST, MODEL, setUp, until, type Setup } from "./gatewaySetup.ts";

const WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar".split(" ");
const SECRET_PROMPT = "the-patient-is-called-Ermintrude";
const SECRET_KEY = "kv-0123456789abcdef0123456789abcdef";
const SECRET_HEADER = "session-of-ermintrude@example.org";

function replayed(file: string): ReplayReport & { remarks: readonly string[]; made: Record<string, unknown>[] } {
  const recording = new Recording(file);
  const made: Record<string, unknown>[] = [];
  const onDecision: ReplayOptions["onDecision"] = (_recorded, result) => {
    if (result instanceof Placement) made.push(without(result.decision));
  };
  const report = new Replay(recording, { settings: recordedSettings(), onDecision }).run();
  return { ...report, remarks: recording.remarks, made };
}

/** Everything but the request's id, which is not recorded. */
function without(decision: Decision): Record<string, unknown> {
  const { requestId: _, ...rest } = { ...explain(decision) };
  return rest;
}

/** Chats that share prefixes, some streamed, some given up, some with a session. */
async function mixedTraffic(url: string, count: number, seed: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const nth = seed + at;
      const content = `${SECRET_PROMPT} ${WORDS[nth % 3]!.repeat(400)} ${WORDS[nth % WORDS.length]!.repeat(200)}`;
      const abort = new AbortController();
      const answer = fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        signal: abort.signal,
        headers: { "content-type": "application/json", ...(nth % 4 === 0 ? { "x-session-id": SECRET_HEADER } : {}) },
        body: JSON.stringify({
          model: MODEL,
          stream: nth % 2 === 0,
          max_tokens: 4 + (nth % 40),
          user: `${SECRET_HEADER}-${nth}`,
          messages: [{ role: "user", content }],
        }),
      });
      if (nth % 5 === 0) setTimeout(() => abort.abort(), nth % 20);
      await answer.then((response) => response.text()).catch(() => undefined);
    }),
  );
}

async function quiet({ router }: Setup): Promise<void> {
  await until("nothing is under way", () => router.scheduler.inFlight === 0 && router.scheduler.depth.requests === 0);
}

describe("a recording of a gateway", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kvasir-recording-"));
  });
  after(() => rm(folder, { recursive: true }));

  for (const policy of ["kvasir", "session", "prefix-hash", "random", "tree-match"] as const)
    it(`of mixed traffic under ${policy} is decided again byte for byte`, async () => {
      const file = join(folder, `${policy}.kvrec`);
      const engines = [{ maxRunning: 4 }, { maxRunning: 3 }, { maxRunning: 2 }];
      await using setup = await setUp(engines, { policy, record: { file }, limits: { queueRequests: 20 } });
      await mixedTraffic(setup.url, 40, 0);
      await setup.engines[1]!.faults.set({ dieAfterTokens: 0, requestsLeft: 12 });
      await mixedTraffic(setup.url, 30, 40);
      await setup.engines[2]!.faults.set({ error: { status: 503, retryAfterSeconds: 1 }, requestsLeft: 6 });
      await mixedTraffic(setup.url, 30, 70);
      await quiet(setup);
      const live = setup.router.decisions.recent(10_000).toReversed();
      assert.ok(
        live.some(({ attempt }) => attempt > 1),
        "something was tried again",
      );
      await setup.router.stop();
      const report = replayed(file);
      assert.equal(report.difference, null, JSON.stringify(report.difference));
      assert.deepEqual([report.unchecked, report.remarks.length], [0, 0]);
      assert.equal(report.equal, report.decisions);
      // Not by the digest, but by all that an operator can see of a decision.
      assert.deepEqual(
        report.made.toSorted((a, b) => String(a["id"]).localeCompare(String(b["id"]))),
        live.map(without).toSorted((a, b) => String(a["id"]).localeCompare(String(b["id"]))),
      );
    });

  it("with KV events, a reload and an engine that comes and goes, too", async () => {
    const file = join(folder, "events.kvrec");
    const told = await Promise.all([1, 2].map(() => startEmulatedEngine({ ...FAST, kvEvents: {} })));
    const engineInputs = told.map(({ url, kvEvents }) => ({
      url,
      kvEvents: { endpoint: kvEvents!.events, replayEndpoint: kvEvents!.replay ?? undefined },
    }));
    const record = { file };
    try {
      await using setup = await setUp([{}], { engines: engineInputs, record }, 0);
      await until("both are ready", () => setup.router.fleet.pool(MODEL).length === 2);
      await mixedTraffic(setup.url, 40, 0);
      const config = (input: object) =>
        configFrom({ listen: { host: "127.0.0.1", port: 0 }, admin: { port: 0 }, record, ...input });
      const engines = [...engineInputs, setup.engines[0]!.url];
      await setup.router.reload(config({ engines, policy: { name: "kvasir", options: { tieMs: 5 } } }));
      await until("the third is there", () => setup.router.fleet.pool(MODEL).length === 3);
      await mixedTraffic(setup.url, 40, 40);
      await told[0]!.faults.set({ loseKvBatches: 2 });
      const during = mixedTraffic(setup.url, 40, 80);
      await setup.router.reload(config({ engines: engines.slice(1), policy: "lmetric" }));
      await during;
      await quiet(setup);
      await setup.router.stop();
      const report = replayed(file);
      assert.equal(report.difference, null, JSON.stringify(report.difference));
      assert.equal(report.unchecked, 0);
      assert.ok(report.equal >= 100, String(report.equal));
    } finally {
      await Promise.all(told.map((engine) => engine.stop()));
    }
  });

  it("holds no prompt, no key, no header and no name of a tenant, and its files are the owner's", async () => {
    const file = join(folder, "private.kvrec");
    const hash = "sha256:c9f1b1b8a3a5a0c3e8f2b9d1b2a4c6e8f0a1b3c5d7e9f1a3b5c7d9e1f3a5b7c9";
    await using setup = await setUp([{}], { record: { file }, keys: [{ name: "team-ermintrude", hash }] });
    const refused = await chat(setup.url, {}, { authorization: `Bearer ${SECRET_KEY}` });
    assert.equal(refused.status, 401);
    await setup.router.stop();

    const open = join(folder, "private-open.kvrec");
    await using second = await setUp([{}], { record: { file: open } });
    await mixedTraffic(second.url, 20, 1);
    await quiet(second);
    const decided = second.router.decisions.recent(1)[0]!;
    await second.router.stop();
    for (const name of (await readdir(folder)).filter((each) => each.startsWith("private"))) {
      const bytes = await readFile(join(folder, name));
      for (const secret of ["Ermintrude", "ermintrude", SECRET_KEY, hash.slice(7), WORDS[0]!, decided.requestId])
        assert.equal(bytes.includes(secret), false, `${name} holds ${secret}`);
    }
  });
});
