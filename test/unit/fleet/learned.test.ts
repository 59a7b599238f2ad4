import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "#src/determinism/random.ts";
import { OutputLengths } from "#src/fleet/outputLengths.ts";
import { QuantileEstimate } from "#src/fleet/quantileEstimate.ts";
import { TokenDensity } from "#src/fleet/tokenDensity.ts";

describe("output lengths", () => {
  it("expects a tenant's own lengths once they are known, else the model's, else everything's", () => {
    const lengths = new OutputLengths();
    for (let at = 0; at < 50; at++) lengths.observe("m", "chat", 100);
    assert.equal(lengths.expect("m", "chat", null), 100);
    assert.equal(lengths.expect("m", "stranger", null), 100);
    assert.equal(lengths.expect("other", "stranger", null), 100);
    for (let at = 0; at < 50; at++) lengths.observe("m", "batch", 1_000);
    assert.equal(lengths.expect("m", "chat", null), 100);
    assert.equal(lengths.expect("m", "batch", null), 1_000);
    assert.ok(lengths.expect("m", "stranger", null) > 100);
  });

  it("never expects more than the limit, nor less than one token", () => {
    const lengths = new OutputLengths();
    for (let at = 0; at < 50; at++) lengths.observe("m", "t", 500);
    assert.equal(lengths.expect("m", "t", 16), 16);
    assert.equal(lengths.p90("m", "t", 16), 16);
    for (let at = 0; at < 5_000; at++) lengths.observe("m", "t", 0);
    assert.equal(lengths.expect("m", "t", null), 1);
  });

  it("ignores what is not a length", () => {
    const lengths = new OutputLengths();
    for (const wrong of [Number.NaN, -5, Number.POSITIVE_INFINITY]) lengths.observe("m", "t", wrong);
    assert.equal(lengths.size, 0);
  });

  it("is bounded: the keys least recently learned go", () => {
    const lengths = new OutputLengths(100);
    for (let at = 0; at < 10_000; at++) lengths.observe("m", `tenant-${at}`, 100);
    assert.equal(lengths.size, 100);
  });
});

describe("the running quantile", () => {
  it("has nine of ten values below it, and follows a drift", () => {
    const random = new SeededRandom(4);
    const p90 = new QuantileEstimate(0.9, 256);
    const share = (scale: number): number => {
      let below = 0;
      for (let at = 0; at < 2_000; at++) {
        const value = scale * -Math.log(1 - random.next());
        if (value <= p90.value) below++;
        p90.observe(value);
      }
      return below / 2_000;
    };
    share(300);
    assert.ok(Math.abs(share(300) - 0.9) < 0.04);
    share(3_000);
    assert.ok(Math.abs(share(3_000) - 0.9) < 0.04);
  });
});

describe("token density", () => {
  it("learns the bytes per token of a model from what answers report", () => {
    const density = new TokenDensity();
    assert.equal(density.bytesPerToken("m"), 4);
    for (let at = 0; at < 200; at++) density.observe("m", 2_500 + (at % 100), 1_000);
    assert.ok(Math.abs(density.bytesPerToken("m") - 2.55) < 0.1);
    assert.equal(density.bytesPerToken("n"), 4);
  });

  it("ignores counts that no tokenizer gives", () => {
    const density = new TokenDensity();
    for (const [bytes, tokens] of [
      [100, 0],
      [0, 0],
      [10, 5_000],
      [1e9, 10],
    ] as const)
      density.observe("m", bytes, tokens);
    assert.equal(density.bytesPerToken("m"), 4);
  });

  it("is bounded", () => {
    const density = new TokenDensity(10);
    for (let at = 0; at < 100; at++) density.observe(`model-${at}`, 4_000, 1_000);
    assert.equal(density.size, 10);
  });
});
