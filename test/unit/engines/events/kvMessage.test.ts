import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { Unpackr } from "msgpackr";
import type { KvEvent, KvStored } from "#src/engines/events/kvEvent.ts";
import { decodeKvMessage, readPublishedMs } from "#src/engines/events/wire/kvMessage.ts";
import { basicMessages, recordedMessages, recordedReplay } from "./recordedFrames.ts";
import { batch, CLEARED, msgpack, removed, stored } from "./wireEvents.ts";

const unpackr = new Unpackr({ useRecords: false, int64AsType: "bigint" });

function decode(...events: unknown[]): readonly KvEvent[] {
  const decoded = decodeKvMessage(batch(events), 0, 0);
  assert.equal(decoded.unreadableEvents, 0);
  return decoded.events;
}

function decodeStored(event: unknown): KvStored {
  const [only] = decode(event);
  assert.ok(only?.kind === "stored");
  return only;
}

/** A stored event with every array as a plain one, for comparison. */
function plain({ engineHashes, tokenIds, ...rest }: KvStored) {
  return { ...rest, engineHashes: [...engineHashes], tokenIds: [...tokenIds] };
}

const BASE = {
  kind: "stored",
  parent: null,
  blockTokens: 2,
  tier: "gpu",
  group: 0,
  fullAttention: true,
  loraName: null,
  salt: null,
  blockKeys: null,
  engineHashes: [11n, 12n],
  tokenIds: [1, 2, 3, 4],
};

describe("KV messages recorded from a real vLLM", () => {
  const payloads = [
    ...recordedMessages().map(({ frames }) => frames[2]),
    ...basicMessages().map((frames) => frames[2]),
    ...recordedReplay("lora-replay.json").map((frames) => frames[3]),
    ...recordedReplay("gap-replay.json")
      .slice(0, -1)
      .map((frames) => frames[3]),
  ].filter((payload) => payload !== undefined);

  it("are read as a general decoder reads them", () => {
    assert.ok(payloads.length > 50);
    for (const payload of payloads) {
      const [seconds, events] = unpackr.unpack(payload) as [number, Record<string, unknown>[]];
      const decoded = decodeKvMessage(payload, 3, 9);
      assert.deepEqual(
        {
          rank: decoded.rank,
          seq: decoded.seq,
          publishedMs: decoded.publishedMs,
          unreadable: decoded.unreadableEvents,
        },
        { rank: 3, seq: 9, publishedMs: seconds * 1000, unreadable: 0 },
      );
      assert.equal(decoded.events.length, events.length);
      for (const [at, event] of decoded.events.entries()) {
        const told = events[at] ?? {};
        if (event.kind === "cleared") {
          assert.equal(told["type"], "AllBlocksCleared");
          continue;
        }
        assert.deepEqual([...event.engineHashes], (told["block_hashes"] as (number | bigint)[]).map(BigInt));
        if (event.kind !== "stored") {
          assert.equal(told["type"], "BlockRemoved");
          continue;
        }
        const parent = told["parent_block_hash"] as number | bigint | null;
        assert.equal(event.parent, parent === null ? null : BigInt(parent));
        assert.deepEqual([...event.tokenIds], told["token_ids"]);
        assert.equal(event.blockTokens, 32);
        assert.equal(event.tokenIds.length, event.engineHashes.length * 32);
        assert.ok(event.fullAttention);
        assert.equal(event.loraName, told["lora_name"]);
        assert.equal(event.blockKeys, null);
      }
    }
  });

  it("tell the salt of a salted prompt, and the adapter of an adapter's", () => {
    const salted = recordedMessages().find(({ step }) => step === "salt-a")?.frames[2];
    assert.ok(salted !== undefined);
    const [first] = decodeKvMessage(salted, 0, 0).events;
    assert.ok(first?.kind === "stored");
    assert.equal(first.salt, "tenant-a");
    const adapters = recordedReplay("lora-replay.json").map((frames) => {
      const [event] = decodeKvMessage(frames[3] ?? Buffer.of(), 0, 0).events;
      return event?.kind === "stored" ? { lora: event.loraName, salt: event.salt } : null;
    });
    assert.deepEqual(adapters.slice(0, 3), [
      { lora: null, salt: null },
      { lora: "lora-a", salt: null },
      { lora: "lora-b", salt: null },
    ]);
  });
});

describe("the forms of a stored event", () => {
  const map = stored([11n, 12n], null, [1, 2, 3, 4], 2);

  it("is a map, its keys in any order, with more than is known", () => {
    assert.deepEqual(plain(decodeStored(map)), BASE);
    const { type, ...rest } = map;
    assert.deepEqual(plain(decodeStored({ ...rest, later: { nested: [1, { deep: true }] }, type })), BASE);
    assert.deepEqual(
      plain(decodeStored({ type, block_hashes: [11n, 12n], token_ids: [1, 2, 3, 4], block_size: 2 })),
      BASE,
    );
  });

  it("is an array of any version's length", () => {
    const whole = [
      "BlockStored",
      [11n, 12n],
      null,
      [1, 2, 3, 4],
      2,
      null,
      "GPU",
      null,
      [null, null],
      0,
      "full_attention",
      null,
    ];
    for (let length = 5; length <= whole.length; length++) {
      assert.deepEqual(plain(decodeStored(whole.slice(0, length))), BASE, `${length} elements`);
    }
    assert.deepEqual(plain(decodeStored([...whole, "from", { the: "future" }])), BASE);
  });

  it("has the salt in a map after the medium, as SGLang 0.5.18 to 0.5.20 write it", () => {
    const event = [
      "BlockStored",
      [-5n],
      null,
      [1, 2],
      2,
      null,
      "CPU_PINNED",
      { cache_salt: "tenant-a", session_id: "s" },
    ];
    const { salt, tier, engineHashes, loraName } = decodeStored(event);
    assert.deepEqual({ salt, tier, loraName }, { salt: "tenant-a", tier: "host", loraName: null });
    assert.deepEqual([...engineHashes], [2n ** 64n - 5n]);
  });

  it("has the salt in a field of its own, as SGLang 0.5.21 writes it", () => {
    assert.equal(decodeStored({ ...map, cache_salt: "tenant-b", session_id: null }).salt, "tenant-b");
  });

  it("comes in a batch that is a map, too, and in one without a rank", () => {
    for (const payload of [
      msgpack({ ts: 1.5, events: [map], data_parallel_rank: 0 }),
      msgpack({ data_parallel_rank: 0, events: [map], ts: 1.5 }),
      msgpack([1.5, [map]]),
      msgpack([1.5, [map], 0, "more"]),
    ]) {
      const decoded = decodeKvMessage(payload, 0, 0);
      assert.equal(decoded.publishedMs, 1500);
      assert.equal(readPublishedMs(payload), 1500);
      assert.equal(decoded.events.length, 1);
    }
  });

  it("has hashes as signed or unsigned numbers or as digests, of which the last eight bytes count", () => {
    // SHA-256 of vLLM's first block [1, 2, 3, 4] and the number that the same event carries with integer hashes.
    const digest = Buffer.from("58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111", "hex");
    const hashes = [digest, digest.subarray(16), 9561501211280363793n, -8885242862429187823n, 7, -1, Buffer.of(1, 2)];
    const event = stored(
      hashes as bigint[],
      null,
      hashes.flatMap(() => [1]),
      1,
    );
    assert.deepEqual(
      [...decodeStored(event).engineHashes],
      [
        9561501211280363793n,
        9561501211280363793n,
        9561501211280363793n,
        9561501211280363793n,
        7n,
        2n ** 64n - 1n,
        258n,
      ],
    );
    assert.equal(decodeStored({ ...map, parent_block_hash: digest }).parent, 9561501211280363793n);
  });

  it("has every width of token id, pairs of which the first counts, and text", () => {
    const ids = [0, 127, 128, 255, 256, 65_535, 65_536, 151_643];
    assert.deepEqual([...decodeStored(stored([1n], null, ids, 8)).tokenIds], ids);
    const pairs = [
      [5, 6],
      [6, 70_000],
      [70_000, 8],
    ];
    assert.deepEqual([...decodeStored(stored([1n], null, pairs, 3)).tokenIds], [5, 6, 70_000]);
    const { tokenIds, blockKeys } = decodeStored(stored([1n, 2n], null, ["17", 5, "img:ab", -4], 2));
    assert.deepEqual([...tokenIds], [17, 5, 0xffff_ffff, 0xffff_ffff]);
    assert.deepEqual(blockKeys, [null, "img:ab,-4"]);
  });

  it("tells where the blocks are", () => {
    const tiers = {
      GPU: "gpu",
      CPU: "host",
      cpu: "host",
      CPU_PINNED: "host",
      STORAGE: "disk",
      DISK: "disk",
      EXTERNAL: "remote",
      "a new one": "remote",
    };
    for (const [medium, tier] of Object.entries(tiers)) assert.equal(decodeStored({ ...map, medium }).tier, tier);
    assert.equal(decodeStored({ ...map, medium: null }).tier, "gpu");
    assert.equal(decodeStored({ ...map, locality: "REMOTE" }).tier, "remote");
    assert.equal(decodeStored({ ...map, medium: "CPU", locality: "LOCAL" }).tier, "host");
  });

  it("tells whether its group is of full attention", () => {
    const isFull = (more: object) => decodeStored({ ...map, ...more }).fullAttention;
    assert.ok(isFull({ group_idx: null, kv_cache_spec_kind: null }));
    assert.ok(isFull({ group_idx: 1, kv_cache_spec_kind: "full_attention" }));
    assert.ok(isFull({ group_idx: 0, kv_cache_spec_kind: "mla_attention" }));
    for (const kind of ["sliding_window", "mamba", "chunked_local_attention", "cross_attention", "unknown"]) {
      assert.ok(!isFull({ group_idx: 0, kv_cache_spec_kind: kind }), kind);
    }
    assert.ok(!isFull({ group_idx: 1 }), "only the number is told");
    assert.ok(!isFull({ group_idx: 0, kv_cache_spec_sliding_window: 4096 }));
    assert.equal(decodeStored({ ...map, group_idx: 3 }).group, 3);
  });

  it("names blocks by hash only where it is a placeholder, or its tokens do not divide into them", () => {
    const placeholder = decodeStored(stored([11n, 12n], null, [], 0, { medium: "CPU" }));
    assert.deepEqual(plain(placeholder), { ...BASE, blockTokens: 0, tokenIds: [], tier: "host" });
    const odd = decodeStored(stored([11n, 12n], null, [1, 2, 3], 2));
    assert.deepEqual(plain(odd), { ...BASE, blockTokens: 0, tokenIds: [] });
  });

  it("tells the adapter by name, or by number where there is no name", () => {
    assert.equal(decodeStored({ ...map, lora_id: 3, lora_name: "sql" }).loraName, "sql");
    assert.equal(decodeStored({ ...map, lora_id: 3, lora_name: null }).loraName, "id:3");
    assert.equal(decodeStored(["BlockStored", [1n], null, [1], 1, 4]).loraName, "id:4");
  });
});

describe("extra keys", () => {
  const keysOf = (extraKeys: unknown, more: object = {}) => {
    const { salt, blockKeys } = decodeStored({ ...stored([1n, 2n], null, [1, 2], 1), extra_keys: extraKeys, ...more });
    return { salt, blockKeys };
  };

  it("are nothing for plain blocks", () => {
    assert.deepEqual(keysOf(null), { salt: null, blockKeys: null });
    assert.deepEqual(keysOf([null, null]), { salt: null, blockKeys: null });
    assert.deepEqual(keysOf([["sql"], ["sql"]], { lora_name: "sql" }), { salt: null, blockKeys: null });
  });

  it("are salt in the first block, media with their places, digests of embeddings", () => {
    assert.deepEqual(keysOf([["tenant-a"], null]), { salt: "tenant-a", blockKeys: null });
    assert.deepEqual(
      keysOf(
        [
          ["sql", ["img", 3], "tenant-a"],
          [
            ["img", -1],
            ["img2", 4],
          ],
        ],
        { lora_name: "sql" },
      ),
      {
        salt: "tenant-a",
        blockKeys: ["img@3", "img@-1,img2@4"],
      },
    );
    assert.deepEqual(keysOf([null, [Buffer.of(0xab, 1)]]), { salt: null, blockKeys: [null, "ab01"] });
    assert.deepEqual(keysOf([["a", "b"], null]), { salt: "a", blockKeys: ["b", null] });
  });

  it("may be tagged", () => {
    const tagged = [
      [
        ["lora", "sql", "/path"],
        ["mm", "img", 3],
        ["cache_salt", "tenant-a"],
      ],
      [["prompt_embeds", "d1"]],
    ];
    assert.deepEqual(keysOf(tagged, { lora_name: "sql" }), { salt: "tenant-a", blockKeys: ["img@3", "d1"] });
  });

  it("are never a salt in a later block", () => {
    const later = { parent_block_hash: 9n };
    assert.deepEqual(keysOf([["tenant-a"], null], later), { salt: null, blockKeys: ["tenant-a", null] });
  });
});

describe("other events", () => {
  it("are removals in both forms", () => {
    for (const event of [removed([1n, 2n], { group_idx: 2, medium: "CPU" }), ["BlockRemoved", [1n, 2n], "CPU", 2]]) {
      const [only] = decode(event);
      assert.deepEqual(only, { kind: "removed", engineHashes: BigUint64Array.of(1n, 2n), tier: "host", group: 2 });
    }
    const [short] = decode(["BlockRemoved", [1n]]);
    assert.deepEqual(short, { kind: "removed", engineHashes: BigUint64Array.of(1n), tier: "gpu", group: 0 });
  });

  it("are clears in both forms", () => {
    assert.deepEqual(decode(CLEARED, ["AllBlocksCleared"]), [{ kind: "cleared" }, { kind: "cleared" }]);
  });

  it("pass without a trace if unknown", () => {
    const unknown = [{ type: "BlockMigrated", block_hashes: "what", to: 3 }, ["Heartbeat", 1], CLEARED];
    assert.deepEqual(decode(...unknown), [{ kind: "cleared" }]);
  });
});

describe("what cannot be read", () => {
  it("costs no other event and is counted", () => {
    const good = stored([1n], null, [1, 2], 2);
    const bad: unknown[] = [
      { ...good, block_hashes: "no list" },
      { ...good, token_ids: [1, null] },
      { ...good, block_size: -2 },
      { ...good, medium: 7 },
      { type: "BlockRemoved" },
      { no: "type" },
      { type: 3 },
      [],
      [4],
      "text",
      null,
      ["BlockStored", [1.5]],
    ];
    for (const [index, event] of bad.entries()) {
      const decoded = decodeKvMessage(batch([good, event, removed([1n])]), 0, 0);
      assert.deepEqual(
        decoded.events.map(({ kind }) => kind),
        ["stored", "removed"],
        `event ${index}`,
      );
      assert.equal(decoded.unreadableEvents, 1);
    }
  });

  it("leaves what came before where a message ends early", () => {
    const whole = batch([stored([1n], null, [1, 2], 2), removed([1n])]);
    for (let length = 0; length < whole.length; length++) {
      const decoded = decodeKvMessage(whole.subarray(0, length), 0, 0);
      assert.ok(decoded.events.length <= 2);
      // Only the rank is behind the last event.
      if (length < whole.length - 1) assert.equal(decoded.unreadableEvents, 1, `${length}`);
    }
  });

  it("never throws on any bytes, nor makes more of them than they are", () => {
    const check = (payload: Uint8Array) => {
      const { events, unreadableEvents } = decodeKvMessage(payload, 0, 0);
      let values = 0;
      for (const event of events) {
        if (event.kind !== "cleared") values += event.engineHashes.length;
        if (event.kind === "stored") values += event.tokenIds.length;
      }
      assert.ok(events.length + unreadableEvents + values <= payload.length + 1);
      readPublishedMs(payload);
    };
    const valid = [
      ...recordedMessages().map(({ frames }) => frames[2] ?? Buffer.of()),
      batch([stored([1n, 2n], 5n, [[1, 2], "x", 3, 4], 2, { extra_keys: [["a", ["i", 1]], null] }), CLEARED]),
      batch([["BlockStored", [Buffer.alloc(32, 7)], null, [1, 2], 2, 1, "GPU", { cache_salt: "s" }]]),
    ];
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300, size: "max" }), check), { numRuns: 2000 });
    fc.assert(
      fc.property(
        fc.constantFrom(...valid),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 }),
        fc.nat(),
        (payload, edits, cut) => {
          const damaged = Uint8Array.from(
            payload.subarray(0, payload.length - (cut % 4 === 0 ? cut % payload.length : 0)),
          );
          for (const [at, value] of edits) damaged[at % damaged.length] = value;
          check(damaged);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it("refuses lengths that the message cannot hold, and endless nesting", () => {
    const claims = [
      Buffer.of(0x93, 0xc0, 0xdd, 0xff, 0xff, 0xff, 0xff),
      Buffer.concat([
        Buffer.of(0x92, 0x01, 0x91, 0x92),
        msgpack("BlockRemoved"),
        Buffer.of(0xdd, 0x7f, 0xff, 0xff, 0xff),
      ]),
      Buffer.concat([Buffer.of(0x92, 0x01, 0x91, 0x92), msgpack("Unknown"), Buffer.alloc(100_000, 0x91)]),
      Buffer.concat([
        Buffer.of(0x92, 0x01, 0x91, 0x82),
        msgpack("type"),
        msgpack("X"),
        msgpack("k"),
        Buffer.alloc(100_000, 0x81),
      ]),
    ];
    for (const payload of claims) assert.equal(decodeKvMessage(payload, 0, 0).events.length, 0);
    const deep = Buffer.concat([
      Buffer.of(0x92, 0x01, 0x91, 0x83),
      msgpack("type"),
      msgpack("BlockStored"),
      msgpack("block_hashes"),
      msgpack([1]),
      msgpack("extra_keys"),
      Buffer.alloc(5001, 0x91),
      Buffer.of(0xc0),
    ]);
    assert.deepEqual(decodeKvMessage(deep, 0, 0).events, []);
    assert.equal(decodeKvMessage(deep, 0, 0).unreadableEvents, 1);
  });
});

describe("decoded arrays", () => {
  it("keep their values while others are decoded", () => {
    const decoded = Array.from({ length: 3000 }, (_, at) => decodeStored(stored([BigInt(at)], null, [at, at + 1], 2)));
    for (const [at, { engineHashes, tokenIds }] of decoded.entries()) {
      assert.deepEqual([...engineHashes], [BigInt(at)]);
      assert.deepEqual([...tokenIds], [at, at + 1]);
    }
  });
});

describe("any event", () => {
  const hash = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  const shape = fc
    .record({
      blockTokens: fc.integer({ min: 1, max: 5 }),
      engineHashes: fc.array(hash, { minLength: 1, maxLength: 6 }),
      parent: fc.option(hash),
      group: fc.integer({ min: 0, max: 3 }),
      loraName: fc.option(fc.string({ minLength: 1 })),
    })
    .chain((event) =>
      fc
        .array(fc.integer({ min: 0, max: 0xffff_fffe }), {
          minLength: event.engineHashes.length * event.blockTokens,
          maxLength: event.engineHashes.length * event.blockTokens,
        })
        .map((tokenIds) => ({ ...event, tokenIds })),
    );

  it("means the same as an array and as a map", () => {
    fc.assert(
      fc.property(shape, ({ engineHashes, parent, tokenIds, blockTokens, group, loraName }) => {
        const kind = "full_attention";
        const map = stored(engineHashes, parent, tokenIds, blockTokens, {
          lora_name: loraName,
          group_idx: group,
          kv_cache_spec_kind: kind,
        });
        const array = [
          "BlockStored",
          engineHashes,
          parent,
          tokenIds,
          blockTokens,
          null,
          "GPU",
          loraName,
          null,
          group,
          kind,
        ];
        const expected = { ...BASE, engineHashes, parent, tokenIds, blockTokens, group, loraName };
        assert.deepEqual(plain(decodeStored(map)), expected);
        assert.deepEqual(plain(decodeStored(array)), expected);
      }),
    );
  });
});
