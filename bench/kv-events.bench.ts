import { bench, do_not_optimize, group, run } from "mitata";
import { Packr, Unpackr } from "msgpackr";
import { decodeKvMessage } from "#src/engines/events/wire/kvMessage.ts";

/*
 * Decoding KV events, beside msgpackr, which gives arrays of numbers. Blocks of 16 tokens, as vLLM publishes them: a
 * long prompt in one event, and a decode step with one event for each sequence whose block became full.
 *   node bench/kv-events.bench.ts
 */

const BLOCK_TOKENS = 16;

const packr = new Packr({ useRecords: false });
const unpackr = new Unpackr({ useRecords: false, int64AsType: "bigint" });

function message(events: number, blocks: number): Buffer {
  const stored = Array.from({ length: events }, (_, event) => {
    const hashes = Array.from({ length: blocks }, (_, block) => 2n ** 63n + BigInt(event * 7919 + block));
    return {
      type: "BlockStored",
      block_hashes: hashes,
      parent_block_hash: 2n ** 63n,
      token_ids: Array.from({ length: blocks * BLOCK_TOKENS }, (_, token) => (token * 7919) % 128_000),
      block_size: BLOCK_TOKENS,
      lora_id: null,
      medium: "GPU",
      lora_name: null,
      extra_keys: hashes.map(() => null),
      group_idx: 0,
      kv_cache_spec_kind: "full_attention",
    };
  });
  return packr.pack([1733.5, stored, 0]);
}

for (const [name, events, blocks] of [
  ["a prompt of 8,192 tokens", 1, 512],
  ["a chunk of 1,024 tokens", 1, 64],
  ["a prompt of 128 tokens", 1, 8],
  ["a decode step of 32 full blocks", 32, 1],
] as const) {
  const payload = message(events, blocks);
  group(`${name}: ${events * blocks} blocks, ${payload.length} bytes`, () => {
    bench("decodeKvMessage", () => do_not_optimize(decodeKvMessage(payload, 0, 0)));
    bench("msgpackr", () => do_not_optimize(unpackr.unpack(payload)));
  });
}

await run();
