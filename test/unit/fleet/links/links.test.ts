import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { Channel } from "#src/fleet/links/channel.ts";
import { LINK_KINDS } from "#src/fleet/links/linkKinds.ts";
import { Links } from "#src/fleet/links/links.ts";
import type { LinkEnd } from "#src/fleet/links/links.ts";
import { Transfer } from "#src/fleet/links/transfer.ts";

let ends = 0;
function end(labels: LinkEnd["labels"] = {}): LinkEnd {
  const index = ends++;
  return { id: `replica-${index}`, index, labels };
}

const GB = 1e9;

describe("links between replicas", () => {
  it("are as fast as the closest thing that both share", () => {
    const links = new Links();
    const a = end({ host: "h1", rack: "r1", zone: "z1", nvlinkDomain: "n1" });
    const to = {
      nvlink: end({ host: "h2", rack: "r1", zone: "z1", nvlinkDomain: "n1" }),
      host: end({ host: "h1", rack: "r1", zone: "z1" }),
      rack: end({ host: "h3", rack: "r1", zone: "z1" }),
      zone: end({ host: "h4", rack: "r2", zone: "z1" }),
      none: end({ host: "h5", rack: "r3", zone: "z2" }),
    };
    const times = Object.entries(to).map(([level, other]) => {
      const link = links.between(a, other);
      assert.equal(link.level, level);
      return link.transferMs(GB, 0, 0);
    });
    assert.deepEqual(
      times,
      [...times].sort((x, y) => x - y),
    );
    assert.equal(times[2], 40 + LINK_KINDS.rack.latencyMs);
  });

  it("can be told otherwise", () => {
    const links = new Links();
    links.configure({
      kinds: { rack: { gigabytesPerSecond: 50, latencyMs: 3, sharedBy: "replica" } },
      kvBytesPerToken: new Map([["big", 1000]]),
    });
    assert.equal(links.between(end({ rack: "r" }), end({ rack: "r" })).transferMs(GB, 0, 0), 23);
    assert.equal(links.kvBytesPerToken("big"), 1000);
    assert.equal(links.kvBytesPerToken("other"), 131_072);
  });

  it("share a port: two transfers out of one host each take twice as long, those of another host do not", () => {
    const links = new Links();
    const [one, other] = [end({ host: "a", rack: "r" }), end({ host: "b", rack: "r" })];
    const sibling = end({ host: "a", rack: "r" });
    const [c, d] = [end({ host: "c", rack: "r" }), end({ host: "d", rack: "r" })];
    const free = links.between(one, c).transferMs(GB, 0, 0);
    const first = new Transfer(links.between(sibling, d), GB, 0);
    first.begin(0);
    assert.equal(links.between(one, c).transferMs(GB, 0, 0), free + 40);
    assert.equal(links.between(other, c).transferMs(GB, 0, 0), free);
    // It enters d too.
    assert.equal(links.between(other, d).transferMs(GB, 0, 0), free + 40);
    // Half of it is over by then.
    assert.equal(links.between(one, c).transferMs(GB, 20, 0), free + 20);
    first.end(30);
    assert.equal(links.between(one, c).transferMs(GB, 30, 30), free);
  });

  it("count what was promised, spread over the time until it begins", () => {
    const links = new Links();
    const [from, to] = [end({ host: "a", rack: "r" }), end({ host: "b", rack: "r" })];
    const link = links.between(from, to);
    const free = link.transferMs(GB, 0, 0);
    const soon = new Transfer(link, GB, 0);
    assert.equal(link.transferMs(GB, 0, 0), free + 40);
    soon.end(0);
    const later = new Transfer(link, GB, 400);
    assert.equal(link.transferMs(GB, 0, 0), free + 4);
    later.end(0);
    later.end(0);
    assert.equal(link.transferMs(GB, 0, 0), free);
  });

  it("are learned: a link at half its rate is found out, and others of its level are not blamed for long", () => {
    const links = new Links();
    const [slow, other] = [end({ host: "slow", rack: "r" }), end({ host: "o", rack: "r" })];
    const to = end({ host: "t", rack: "r" });
    const once = (from: LinkEnd, bytes: number, ms: number): void => {
      const transfer = new Transfer(links.between(from, to), bytes, 0);
      transfer.begin(0);
      transfer.arrived(5, ms + 5);
    };
    for (let at = 0; at < 60; at++) {
      const bytes = GB * (1 + (at % 4));
      once(slow, bytes, 2 + (2 * 40 * bytes) / GB);
      once(other, bytes, 2 + (40 * bytes) / GB);
    }
    const slowMs = links.between(slow, to).transferMs(GB, 0, 0);
    const otherMs = links.between(other, to).transferMs(GB, 0, 0);
    assert.ok(Math.abs(slowMs - 82) < 8, `${slowMs}`);
    assert.ok(Math.abs(otherMs - 42) < 4, `${otherMs}`);
    assert.ok(links.between(slow, to).learned);
  });

  it("go with their replicas, and a replica that takes over an index has none of its predecessor's", () => {
    const links = new Links();
    const froms = Array.from({ length: 20 }, () => end({ host: "a" }));
    const tos = Array.from({ length: 20 }, (_, at) => end({ host: `h${at}` }));
    for (const from of froms) for (const to of tos) links.between(from, to);
    assert.equal(links.size.links, 400);
    const successor = { ...tos[0]!, id: "successor", labels: { host: "a" } };
    assert.equal(links.between(froms[0]!, successor).level, "host");
    assert.equal(links.size.links, 400);
    for (const one of [...froms, ...tos]) links.forget(one);
    assert.deepEqual(links.size, { links: 0, channels: 0 });
  });

  it("stay when labels are said again, and change with them", () => {
    const links = new Links();
    const from = { id: "f", index: 500, labels: { host: "a" } };
    const to = { id: "t", index: 501, labels: { host: "a" } };
    const link = links.between(from, to);
    from.labels = { host: "a" };
    assert.equal(links.between(from, to), link);
    from.labels = { host: "b" };
    assert.equal(links.between(from, to).level, "none");
    assert.equal(links.size.links, 1);
  });

  it("never hand over more quickly than the least that is possible", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ host: fc.nat(3), rack: fc.nat(2), domain: fc.nat(9) }), { minLength: 2, maxLength: 8 }),
        fc.array(fc.record({ which: fc.nat(7), ms: fc.integer({ min: 1, max: 500 }) }), { maxLength: 30 }),
        (places, seen) => {
          const links = new Links();
          const made = places.map(({ host, rack, domain }) =>
            end({ host: `${rack}-${host}`, rack: `${rack}`, ...(domain < 3 ? { nvlinkDomain: `${domain}` } : {}) }),
          );
          const [from, to] = [made.slice(0, made.length / 2), made.slice(made.length / 2)];
          links.members(from, to);
          const pairs = from.flatMap((one) => to.map((other) => links.between(one, other)));
          for (const { which, ms } of seen) {
            const transfer = new Transfer(pairs[which % pairs.length]!, 1e8, 0);
            transfer.begin(0);
            transfer.arrived(0, ms);
          }
          for (const link of pairs)
            for (const bytes of [0, 1e6, 1e9]) assert.ok(link.transferMs(bytes, 0, 0) >= links.leastMs(bytes) - 1e-9);
        },
      ),
    );
  });
});

describe("a channel", () => {
  it("counts exactly whatever the order of things", () => {
    const kind = fc.constantFrom("promise", "unpromise", "begin", "end");
    fc.assert(
      fc.property(fc.array(fc.record({ kind, bytes: fc.nat(1e9), afterMs: fc.nat(50) })), (steps) => {
        const channel = new Channel(1e6);
        const promised: number[] = [];
        let active = 0;
        let nowMs = 0;
        for (const { kind, bytes, afterMs } of steps) {
          nowMs += afterMs;
          if (kind === "promise") {
            channel.promise(bytes, nowMs + 10);
            promised.push(bytes);
          } else if (kind === "unpromise" && promised.length > 0) channel.unpromise(promised.pop()!);
          else if (kind === "begin") {
            channel.begin(bytes, nowMs);
            active++;
          } else if (kind === "end" && active > 0) {
            channel.end(nowMs);
            active--;
          }
          assert.equal(channel.active, active);
          assert.equal(channel.promised, promised.length);
          assert.equal(
            channel.promisedBytes,
            promised.reduce((sum, one) => sum + one, 0),
          );
          assert.ok(channel.leftBytes(nowMs) >= 0);
        }
        while (active-- > 0) channel.end(nowMs);
        while (promised.length > 0) channel.unpromise(promised.pop()!);
        assert.equal(channel.leftBytes(nowMs), 0);
        assert.equal(channel.othersBytes(1e6, nowMs, nowMs), 0);
      }),
    );
  });
});
