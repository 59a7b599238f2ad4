/**
 * The precise index with the shapes of the Mooncake trace: `node bench/index.bench.ts [trace.jsonl]`. 64 engines, each
 * with room for 450,000 tokens in blocks of 16, answer the trace's requests; what they publish goes into the index.
 */
import { cpus, loadavg } from "node:os";
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
const REQUESTS_AT_A_TIME = 32;
/** Odd, so that different numbers stay different: 2^64 over the golden ratio. */
const MIXER = 0x9e3779b97f4a7c15n;
const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
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
  /** Published, and not yet in the index. */
  #published: { readonly replica: number; readonly batch: KvEventBatch; readonly payload: Buffer | null }[] = [];
  blocks = 0;
  spentMs = 0;

  constructor(form: "events" | "wire") {
    this.#form = form;
    for (const { index } of candidates) this.index.view(index).upToDate(true, 0);
  }

  answer(request: TraceRequest): void {
    const replica = this.#choose(request);
    for (const batch of this.engines[replica]!.run(request)) {
      this.#published.push({ replica, batch, payload: this.#form === "wire" ? encoded(batch) : null });
      this.blocks += blocksIn(batch);
    }
  }

  /** Some requests' events at a time: what the modelled engines do must not be in the way of what is measured. */
  ingest(): void {
    const before = process.threadCpuUsage();
    for (const { replica, batch, payload } of this.#published)
      this.index.view(replica).apply(payload === null ? batch : decodeKvMessage(payload, 0, batch.seq), 0);
    const { user, system } = process.threadCpuUsage(before);
    this.spentMs += (user + system) / 1000;
    this.#published = [];
    for (const { index } of candidates)
      if (this.index.view(index).state.state !== "live") throw new Error(`replica ${index} is not live`);
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

/** Bytes of an index of own traffic after so many prefixes that nobody sent before. */
function modelledBytes(...after: readonly number[]): number[] {
  const index = new PrefixIndex();
  for (const { index: replica } of candidates) index.setCapacity(replica, CAPACITY_TOKENS);
  const hashes = new BigUint64Array(4);
  const bytes: number[] = [];
  for (let prompt = 1; prompt <= Math.max(...after); prompt++) {
    for (let at = 0; at < hashes.length; at++) hashes[at] = BigInt.asUintN(64, BigInt(4 * prompt + at) * MIXER);
    index.confirm(index.place(prompt % REPLICAS, { hashes, blockTokens: BLOCK_TOKENS }, prompt), prompt);
    if (after.includes(prompt)) bytes.push(index.bytes);
  }
  return bytes;
}

function row(figure: string, measured: string, aim: string): void {
  console.log(`${figure.padEnd(64)} ${measured.padEnd(28)} ${aim}`);
}

const percentile = (times: Float64Array, share: number): string => times[Math.floor(times.length * share)]!.toFixed(1);

console.log(
  `load average ${loadavg()
    .map((load) => load.toFixed(1))
    .join(" ")}, ${cpus().length} × ${cpus()[0]!.model}`,
);
row("figure", "measured", "aim");
for (const form of ["events", "wire"] as const) {
  const run = new Run(form);
  for (const [at, request] of trace.entries()) {
    run.answer(request);
    if (at % REQUESTS_AT_A_TIME === 0) run.ingest();
  }
  run.ingest();
  const { index } = run;
  const rate = (run.blocks / run.spentMs / 1000).toFixed(2);
  row(
    form === "events" ? "decoded events into the index" : "bytes on the wire into the index",
    `${rate} million blocks/s`,
    "1",
  );
  if (form === "wire") continue;

  const held = run.engines.reduce((sum, engine) => sum + engine.held, 0);
  if (held !== index.size) throw new Error(`${index.size} holder-blocks, not ${held}`);
  const shared = Math.round(100 * (index.size / index.blocks - 1));
  row(
    `bytes per holder-block, ${index.size}, ${shared} % more than blocks`,
    (index.bytes / index.size).toFixed(1),
    "32, at most 60",
  );

  const prompts = trace
    .filter(({ blocks }) => blocks.length >= PROMPT_BLOCKS)
    .slice(-4_000)
    .map(({ blocks }) => tokenChain(root, tokensOf(blocks.subarray(0, PROMPT_BLOCKS)), BLOCK_TOKENS));
  const found = prompts.map((hashes) => {
    index.match(hashes, candidates, out);
    return Math.max(...out.gpu);
  });
  for (const least of [0, PROMPT_BLOCKS - 50]) {
    const times = run.lookUp(prompts.filter((_, at) => found[at]! >= least));
    const which = least === 0 ? "all" : `of which ${least} and more are found`;
    row(
      `lookup of ${PROMPT_BLOCKS} blocks over ${REPLICAS} replicas, ${times.length} prompts, ${which}`,
      `p50 ${percentile(times, 0.5)}, p99 ${percentile(times, 0.99)} µs`,
      "p99 25 µs",
    );
  }
}
const [early, late] = modelledBytes(600_000, 1_000_000);
row("MB after 600,000 and 1,000,000 unique prefixes of 4 blocks", `${mb(early!)}, ${mb(late!)}`, "the same");
console.log(
  `load average ${loadavg()
    .map((load) => load.toFixed(1))
    .join(" ")}`,
);
