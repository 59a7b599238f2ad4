import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { DnsSource, type DnsSourceOptions } from "#src/discovery/dnsSource.ts";
import { DnsError, FakeResolver } from "./fakeResolver.ts";
import { listening } from "./listening.ts";

function setUp(options: Partial<DnsSourceOptions> = {}) {
  const timers = new ManualTimers(new ManualClock());
  const resolver = new FakeResolver();
  const source = new DnsSource({ host: "engines.test", record: "address", timers, resolver, ...options });
  return { timers, resolver, source, heard: listening() };
}

const v4 = (...addresses: string[]) => addresses.map((address) => ({ address, ttl: 5 }));

describe("discovery by DNS", () => {
  it("joins A and AAAA records, and gives all what they share", async () => {
    const { resolver, source, heard } = setUp({ port: 9000, scheme: "https", shared: { role: "decode", apiKey: "k" } });
    resolver.a = v4("10.0.0.2", "10.0.0.1");
    resolver.aaaa = [{ address: "fd00::1", ttl: 5 }];
    await source.start(heard);
    assert.deepEqual(heard.urls(), ["https://10.0.0.1:9000", "https://10.0.0.2:9000", "https://[fd00::1]:9000"]);
    for (const endpoint of heard.sets[0] ?? []) assert.deepEqual([endpoint.role, endpoint.apiKey], ["decode", "k"]);
    await source.stop();
  });

  it("takes ports from SRV records, and the targets as they are called", async () => {
    const { resolver, source, heard } = setUp({ record: "srv" });
    resolver.srv = [
      { name: "b.engines.test.", port: 8002 },
      { name: "a.engines.test", port: 8001 },
    ];
    await source.start(heard);
    assert.deepEqual(heard.urls(), ["http://a.engines.test:8001", "http://b.engines.test:8002"]);
    await source.stop();
  });

  it("looks again when the shortest TTL ends, within its bounds", async () => {
    for (const [ttl, lookMs] of [
      [0, 1000],
      [3, 3000],
      [86_400, 10_000],
    ] as const) {
      const { timers, resolver, source, heard } = setUp();
      resolver.a = [
        { address: "10.0.0.1", ttl },
        { address: "10.0.0.2", ttl: 99_999 },
      ];
      await source.start(heard);
      await timers.advance(lookMs - 1);
      assert.equal(resolver.queries, 1, `ttl ${ttl}`);
      await timers.advance(1);
      assert.equal(resolver.queries, 2, `ttl ${ttl}`);
      await source.stop();
    }
  });

  it("keeps one family while the name server fails for it, and follows the other", async () => {
    const { timers, resolver, source, heard } = setUp();
    resolver.a = v4("10.0.0.1");
    resolver.aaaa = [{ address: "fd00::1", ttl: 5 }];
    await source.start(heard);
    resolver.aaaa = new DnsError("ESERVFAIL");
    resolver.a = v4("10.0.0.2");
    await timers.advance(5000);
    assert.deepEqual(heard.urls(), ["http://10.0.0.2:8000", "http://[fd00::1]:8000"]);
    assert.match(heard.failures.at(-1)?.message ?? "", /AAAA of engines\.test.*ESERVFAIL/);
    resolver.aaaa = new DnsError("ENODATA");
    await timers.advance(1000);
    assert.deepEqual(heard.urls(), ["http://10.0.0.2:8000"], "no records is an answer");
    await source.stop();
  });

  it("keeps the last set when all records are gone", async () => {
    const { timers, resolver, source, heard } = setUp();
    resolver.a = v4("10.0.0.1");
    await source.start(heard);
    for (const nothing of [new DnsError("ENOTFOUND"), []]) {
      resolver.a = nothing;
      await timers.advance(10_000);
      assert.deepEqual(heard.urls(), ["http://10.0.0.1:8000"]);
      assert.match(heard.failures.at(-1)?.message ?? "", /no records for engines\.test/);
    }
    await source.stop();
  });

  it("does not wait for a name server that never answers", async () => {
    const { timers, resolver, source, heard } = setUp({ limitMs: 4000 });
    resolver.a = "hang";
    resolver.aaaa = [{ address: "fd00::1", ttl: 5 }];
    const started = source.start(heard);
    await timers.advance(4000);
    await started;
    assert.deepEqual(heard.urls(), ["http://[fd00::1]:8000"]);
    assert.match(heard.failures[0]?.message ?? "", /within 4000 ms/);
    await source.stop();
  });

  it("takes no more endpoints than it may", async () => {
    const { resolver, source, heard } = setUp({ maxEndpoints: 100 });
    resolver.a = v4(...Array.from({ length: 250 }, (_, i) => `10.0.1.${i}`));
    await source.start(heard);
    assert.equal(heard.urls().length, 100);
    await source.stop();
  });
});
