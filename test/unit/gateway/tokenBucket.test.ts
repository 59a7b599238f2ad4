import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { TokenBucket } from "#src/gateway/tokenBucket.ts";

describe("a token bucket", () => {
  it("allows a minute's worth at once, then what refills, and says how long to wait", () => {
    const bucket = new TokenBucket(60, 0);
    for (let at = 0; at < 60; at++) assert.equal(bucket.take(1, 0), 0);
    assert.equal(bucket.take(1, 0), 1000);
    assert.equal(bucket.take(1, 400), 600);
    assert.equal(bucket.take(1, 1000), 0);
    assert.equal(bucket.take(1, 1000), 1000);
  });

  it("lets one through that is larger than the bucket, and makes the others wait for it", () => {
    const bucket = new TokenBucket(100, 0);
    assert.equal(bucket.take(250, 0), 0);
    assert.equal(bucket.take(1, 0), 60_000 * 1.51);
    assert.equal(bucket.take(250, 60_000), 60_000 * 1.5);
  });

  it("gives back what was not used and takes what was used beyond", () => {
    const bucket = new TokenBucket(100, 0);
    assert.equal(bucket.take(100, 0), 0);
    bucket.correct(100, 40, 0);
    assert.equal(bucket.take(60, 0), 0);
    bucket.correct(60, 90, 0);
    assert.equal(bucket.take(30, 0), 36_000);
  });

  it("never allows more in a time than a full bucket and the refill", () => {
    const steps = fc.array(
      fc.record({ waitMs: fc.integer({ min: 0, max: 5_000 }), amount: fc.integer({ min: 1, max: 50 }) }),
    );
    fc.assert(
      fc.property(steps, (sequence) => {
        const bucket = new TokenBucket(50, 0);
        let nowMs = 0;
        let taken = 0;
        for (const { waitMs, amount } of sequence) {
          nowMs += waitMs;
          if (bucket.take(amount, nowMs) === 0) taken += amount;
          assert.ok(taken <= 50 + (nowMs * 50) / 60_000 + 1e-6);
        }
      }),
    );
  });

  it("does not mind a clock that stands still or goes back", () => {
    const bucket = new TokenBucket(10, 1000);
    assert.equal(bucket.take(10, 500), 0);
    assert.equal(bucket.take(1, 900), 6000);
  });
});
