/**
 * The precise index with the shapes of the Mooncake trace: `node bench/index.bench.ts [trace.jsonl]`. 64 engines, each
 * with room for 450,000 tokens in blocks of 16, answer the trace's requests; what they publish goes into the index.
 */
import { Packr } from "msgpackr";
import { SeededRandom } from "#src/determinism/random.ts";
import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import { decodeKvMessage } from "#src/engines/events/wire/kvMessage.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { PrefixIndex } from "#src/fleet/prefixIndex.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";
import { BLOCK_TOKENS, readTraceBlocks, TraceEngine, tokensOf, type TraceRequest } from "./index/traceEngines.ts";

const REPLICAS = 64;
const CAPACITY_TOKENS = 450_000;
const PROMPT_BLOCKS = 12_000 / BLOCK_TOKENS;
const trace = readTraceBlocks(
  process.argv[2] ?? new URL("../../shared/traces/conversation_trace.jsonl", import.meta.url).pathname,
);
const random = new SeededRandom(1);
const root = chainRoot(null, null, BLOCK_TOKENS);
const candidates = Array.from({ length: REPLICAS }, (_, index) => ({ index }));
const out = heldBlocks(REPLICAS);

/** As vLLM 0.32 writes it. */
const packr = new Packr({ useRecords: false, variableMapSize: true, int64AsType: "bigint" });
function encoded({ events }: KvEventBatch): Buffer {
  return packr.pack([
    0.5,
    events.map((event) =>
      event.kind === "stored"
        ? {
            type: "BlockStored",
            block_hashes: [...event.engineHashes],
            parent_block_hash: event.parent,
            token_ids: [...event.tokenIds],
            block_size: event.blockTokens,
            lora_id: null,
            medium: "GPU",
            lora_name: null,
            extra_keys: Array.from(event.engineHashes, () => null),
            group_idx: 0,
            kv_cache_spec_kind: "full_attention",
          }
        : event.kind === "removed"
          ? { type: "BlockRemoved", block_hashes: [...event.engineHashes], medium: "GPU", group_idx: 0 }
          : { type: "AllBlocksCleared" },
    ),
    0,
  ]);
}

function blocksIn(batch: KvEventBatch): number {
  return batch.events.reduce((sum, event) => sum + (event.kind === "cleared" ? 0 : event.engineHashes.length), 0);
}

class Run {
  readonly index = new PrefixIndex();
  readonly engines = candidates.map(
    ({ index }) => new TraceEngine(Math.floor(CAPACITY_TOKENS / BLOCK_TOKENS), index + 1),
  );
  /** `wire`: from the bytes that an engine sends. */
  readonly #form: "events" | "wire";
  blocks = 0;
  spentMs = 0;

  constructor(form: "events" | "wire") {
    this.#form = form;
    for (const { index } of candidates) this.index.view(index).upToDate(true, 0);
  }

  answer(request: TraceRequest): void {
    const replica = this.#choose(request);
    const batches = this.engines[replica]!.run(request);
    const view = this.index.view(replica);
    const payloads = this.#form === "wire" ? batches.map(encoded) : [];
    const before = process.threadCpuUsage();
    if (this.#form === "events") for (const batch of batches) view.apply(batch, 0);
    else for (const [at, payload] of payloads.entries()) view.apply(decodeKvMessage(payload, 0, batches[at]!.seq), 0);
    const { user, system } = process.threadCpuUsage(before);
    this.spentMs += (user + system) / 1000;
    for (const batch of batches) this.blocks += blocksIn(batch);
    if (view.state.state !== "live") throw new Error(`replica ${replica} is ${view.state.state}`);
  }

  /** Mostly where most of it is cached, else anywhere. */
  #choose({ blocks }: TraceRequest): number {
    let best = random.below(REPLICAS);
    if (random.below(4) === 0) return best;
    this.index.match(tokenChain(root, tokensOf(blocks), BLOCK_TOKENS), candidates, out);
    for (const { index } of candidates) if (out.gpu[index]! > out.gpu[best]!) best = index;
    return best;
  }

  /**
   * Microseconds per lookup of each prompt. Each is looked up several times, with all others in between so that nothing
   * stays in a near cache, and the quickest counts: what the machine does beside it is not the index's.
   */
  lookUp(prompts: readonly BigUint64Array[]): Float64Array {
    const times = new Float64Array(prompts.length).fill(Number.POSITIVE_INFINITY);
    for (let round = 0; round < 7; round++)
      for (const [at, hashes] of prompts.entries()) {
        const before = performance.now();
        this.index.match(hashes, candidates, out);
        times[at] = Math.min(times[at]!, 1000 * (performance.now() - before));
      }
    return times.sort();
  }
}

for (const form of ["events", "wire"] as const) {
  const run = new Run(form);
  for (const request of trace) run.answer(request);
  const { index } = run;
  const rate = (run.blocks / run.spentMs / 1000).toFixed(2);
  const what = form === "events" ? "decoded events" : "bytes on the wire";
  console.log(`ingest of ${what}: ${rate} million blocks/s (${run.blocks} stored or removed)`);
  if (form === "wire") continue;

  const held = run.engines.reduce((sum, engine) => sum + engine.held, 0);
  if (held !== index.size) throw new Error(`${index.size} holder-blocks, not ${held}`);
  console.log(
    `${index.size} holder-blocks of ${index.blocks} blocks: ${(index.bytes / index.size).toFixed(1)} bytes each`,
  );

  const prompts = trace
    .filter(({ blocks }) => blocks.length >= PROMPT_BLOCKS)
    .slice(-4_000)
    .map(({ blocks }) => tokenChain(root, tokensOf(blocks.subarray(0, PROMPT_BLOCKS)), BLOCK_TOKENS));
  const found = prompts.map((hashes) => {
    index.match(hashes, candidates, out);
    return Math.max(...out.gpu);
  });
  for (const least of [0, 1, PROMPT_BLOCKS - 50]) {
    const times = run.lookUp(prompts.filter((_, at) => found[at]! >= least));
    const at = (share: number) => times[Math.floor(times.length * share)]!.toFixed(1);
    const which = `${times.length} prompts of ${PROMPT_BLOCKS} blocks, at least ${least} of them found`;
    console.log(`lookup of ${which}: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(0.9999)} µs`);
  }
}
