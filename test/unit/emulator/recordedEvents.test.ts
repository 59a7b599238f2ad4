import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Unpackr } from "msgpackr";
import type { BlockContent, CacheEvent } from "#src/emulator/events/cacheEvent.ts";
import { CacheRecorder } from "#src/emulator/events/cacheRecorder.ts";
import { encodeBatch, EVENT_FORMS } from "#src/emulator/events/eventForm.ts";
import { EngineCore } from "#src/emulator/scheduler/engineCore.ts";
import type { Sequence } from "#src/emulator/scheduler/sequence.ts";
import { blockHashes } from "#src/emulator/tokens/blockHashes.ts";
import { GENERIC_PRIOR } from "#src/hardware/stepTimes.ts";
import { recordedBatches, recordedReplay, type RecordedBatch } from "./recordedEvents.ts";

const BLOCK_TOKENS = 32;
const UNPACKR = new Unpackr({ int64AsType: "bigint", mapsAsObjects: true });

interface Owner {
  readonly content: BlockContent;
}

interface Ask {
  readonly prompt: readonly number[];
  readonly answer?: readonly number[];
  readonly adapter?: string;
  readonly salt?: string;
  readonly readsCache?: boolean;
}

/** The recorded engine: 64 blocks of which vLLM keeps one for itself, 128 tokens a step. */
class Replica {
  readonly #recorder = new CacheRecorder(BLOCK_TOKENS);
  readonly #core = new EngineCore<Owner>({
    times: GENERIC_PRIOR,
    kvBlocks: 63,
    blockTokens: BLOCK_TOKENS,
    maxRunning: 16,
    maxBatchedTokens: 128,
    policy: "fcfs",
    prefixCaching: true,
    maxResidentAdapters: 2,
    adapterLoadMs: 0,
    cacheListener: this.#recorder,
  });
  readonly batches: unknown[] = [];

  reset(): void {
    assert.ok(this.#core.clearCache());
  }

  /** Returns the cached tokens of each. */
  ask(...asks: Ask[]): number[] {
    const sequences = asks.map((ask) => this.#submit(ask));
    while (this.#core.hasWork) this.#step();
    return sequences.map(({ cachedTokens }) => cachedTokens);
  }

  askAndLeave(ask: Ask, afterSteps: number): void {
    const sequence = this.#submit(ask);
    for (let step = 0; step < afterSteps; step++) this.#step();
    assert.ok(this.#core.abort(sequence));
  }

  #submit(ask: Ask): Sequence<Owner> {
    const { prompt, answer = [0], readsCache = true } = ask;
    const content = {
      tokens: Uint32Array.from([...prompt, ...answer]),
      adapter: ask.adapter ?? null,
      salt: ask.salt ?? null,
    };
    return this.#core.submit(
      {
        promptTokens: prompt.length,
        outputTokens: answer.length,
        hashes: blockHashes(content.tokens, BLOCK_TOKENS, content),
        adapter: content.adapter,
        priority: 0,
        readsCache,
        owner: { content },
      },
      0,
    );
  }

  #step(): void {
    this.#core.step(0);
    this.#recorder.seal();
    const events = this.#recorder.take();
    if (events.length === 0) return;
    this.batches.push(UNPACKR.unpack(encodeBatch(EVENT_FORMS.vllm, { events, atSeconds: 0, rank: 0 })));
  }
}

/** The batches without their times, each hash replaced by when it was first seen. */
function structure(batches: readonly unknown[]): unknown[] {
  const known = new Map<unknown, string>();
  const name = (hash: unknown): unknown => {
    if (hash === null) return null;
    if (!known.has(hash)) known.set(hash, `hash ${known.size}`);
    return known.get(hash);
  };
  return batches.map((batch) => {
    const [, events, rank] = batch as [number, Record<string, unknown>[], number];
    const renamed = events.map((event) => {
      const { block_hashes: hashes, parent_block_hash: parent, ...rest } = event;
      return {
        ...rest,
        ...(parent === undefined ? {} : { parent: name(parent) }),
        ...(hashes === undefined ? {} : { hashes: (hashes as unknown[]).map(name) }),
      };
    });
    return [renamed, rank];
  });
}

const ids = (from: number, count: number): number[] => Array.from({ length: count }, (_, at) => from + at);

/** The tokens of all blocks that a batch stores. */
function tokensOf(payload: Buffer | undefined): number[] {
  assert.ok(payload !== undefined);
  const [, events] = UNPACKR.unpack(payload) as [number, { token_ids?: number[] }[]];
  return events.flatMap(({ token_ids: tokens }) => tokens ?? []);
}

/** What the recorded engine answered in a step that began with 20 tokens, as far as it filled blocks. */
function answerOf(recorded: readonly RecordedBatch[], step: string, tokens: number): number[] {
  const known = recorded.filter((batch) => batch.step === step).flatMap(({ payload }) => tokensOf(payload));
  return [...known.slice(20), ...ids(0, tokens)].slice(0, tokens);
}

describe("the emulated cache against a recorded one", () => {
  it("tells the same, batch by batch, through repeats, duplicates, chunks, an abort, evictions and resets", () => {
    const recorded = recordedBatches("sha256cbor-seed0.json");
    const base = ids(2000, 100);
    const engine = new Replica();
    engine.reset();
    assert.deepEqual(engine.ask({ prompt: base }), [0]);
    assert.deepEqual(engine.ask({ prompt: base }), [96]);
    assert.deepEqual(engine.ask({ prompt: [...ids(2000, 64), ...ids(3000, 36)] }), [64]);
    assert.deepEqual(engine.ask({ prompt: ids(2000, 96) }), [64]);
    assert.deepEqual(engine.ask({ prompt: ids(2000, 20) }), [0]);
    assert.deepEqual(engine.ask({ prompt: ids(4000, 20), answer: answerOf(recorded, "decode-20+80", 80) }), [0]);
    assert.deepEqual(engine.ask({ prompt: ids(5000, 500) }), [0]);
    assert.deepEqual(engine.ask({ prompt: base, salt: "tenant-a" }), [0]);
    assert.deepEqual(engine.ask({ prompt: base, salt: "tenant-a" }), [96]);
    assert.deepEqual(engine.ask({ prompt: base, readsCache: false }), [0]);
    assert.deepEqual(engine.ask({ prompt: ids(6000, 100), readsCache: false }), [0]);
    assert.deepEqual(engine.ask({ prompt: ids(6000, 100) }), [96]);
    const same = { prompt: ids(7000, 200) };
    assert.deepEqual(engine.ask(same, same, same, same), [0, 192, 192, 192]);
    engine.askAndLeave({ prompt: ids(9000, 960) }, 6);
    for (let at = 0; at < 4; at++) assert.deepEqual(engine.ask({ prompt: ids(10_000 + at * 1000, 900) }), [0]);
    assert.deepEqual(engine.ask({ prompt: base }), [0]);
    const chat = recorded.find(({ step }) => step === "chat");
    assert.deepEqual(engine.ask({ prompt: [...tokensOf(chat?.payload).slice(0, 64), ...ids(30_000, 23)] }), [0]);
    engine.reset();
    assert.deepEqual(engine.ask({ prompt: base }), [0]);

    const seen = recorded.filter(({ step }) => step !== "after-gap").map(({ payload }) => UNPACKR.unpack(payload));
    const told = structure(engine.batches);
    structure(seen).forEach((batch, at) => assert.deepEqual(told[at], batch, `batch ${at}: ${recorded[at]?.step}`));
    assert.equal(told.length, seen.length);
  });
});

interface WireEvent {
  readonly type: "BlockStored" | "BlockRemoved" | "AllBlocksCleared";
  readonly block_hashes: (number | bigint)[];
  readonly parent_block_hash: number | bigint | null;
  readonly token_ids: number[];
  readonly block_size: number;
  readonly lora_id: number | null;
  readonly lora_name: string | null;
  readonly extra_keys: (string[] | null)[];
}

function toCacheEvents(event: WireEvent): CacheEvent[] {
  if (event.type === "AllBlocksCleared") return [{ kind: "cleared" }];
  if (event.type === "BlockRemoved")
    return event.block_hashes.map((hash) => ({ kind: "removed", tier: "gpu", hash: BigInt(hash) }));
  const { lora_id: id, lora_name: name, parent_block_hash: parent, extra_keys: keys } = event;
  return [
    {
      kind: "stored",
      tier: "gpu",
      hashes: BigUint64Array.from(event.block_hashes, BigInt),
      parent: parent === null ? null : BigInt(parent),
      tokens: Uint32Array.from(event.token_ids),
      blockTokens: event.block_size,
      adapter: id === null || name === null ? null : { name, id },
      salt: keys[0]?.find((key) => key !== name) ?? null,
    },
  ];
}

describe("the emulated wire form", () => {
  it("is that of vLLM 0.32, byte for byte", () => {
    const payloads = [
      ...recordedBatches("sha256cbor-seed0.json").map(({ payload }) => payload),
      ...recordedReplay("lora-replay.json"),
    ];
    assert.ok(payloads.length > 100);
    for (const payload of payloads) {
      const [atSeconds, events, rank] = UNPACKR.unpack(payload) as [number, WireEvent[], number];
      const again = encodeBatch(EVENT_FORMS.vllm, { atSeconds, rank, events: events.flatMap(toCacheEvents) });
      assert.equal(again.toString("hex"), payload.toString("hex"));
    }
  });

  it("tells adapters as vLLM does", () => {
    const prompt = ids(100, 100);
    const engine = new Replica();
    for (const adapter of [undefined, "lora-a", "lora-b"]) {
      engine.ask({ prompt, ...(adapter === undefined ? {} : { adapter }) });
    }
    const recorded = recordedReplay("lora-replay.json").slice(0, 3);
    assert.deepEqual(
      structure(engine.batches),
      structure(recorded.map((payload) => UNPACKR.unpack(payload) as unknown)),
    );
  });
});
