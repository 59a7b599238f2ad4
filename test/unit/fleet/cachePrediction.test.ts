import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CachePrediction } from "#src/fleet/cachePrediction.ts";

describe("predicted against reported cached tokens", () => {
  it("is the share of the last hundred answers that agree to within a block", () => {
    const prediction = new CachePrediction();
    assert.equal(prediction.agreement, null);
    prediction.observe(624, 640, 16);
    prediction.observe(640, 624, 16);
    prediction.observe(640, 623, 16);
    assert.equal(prediction.agreement, 2 / 3);
    for (let at = 0; at < 100; at++) prediction.observe(64, at < 30 ? 0 : 64, 16);
    assert.equal(prediction.agreement, 0.7);
  });

  it("alarms when most of enough answers differ, and until nearly all agree again", () => {
    const prediction = new CachePrediction();
    for (let at = 0; at < 19; at++) prediction.observe(64, 0, 16);
    assert.equal(prediction.isOff, false);
    prediction.observe(64, 0, 16);
    assert.equal(prediction.isOff, true);
    for (let at = 0; at < 89; at++) prediction.observe(64, 64, 16);
    assert.equal(prediction.agreement, 0.89);
    assert.equal(prediction.isOff, true);
    prediction.observe(64, 64, 16);
    assert.equal(prediction.isOff, false);
  });

  it("does not alarm for single answers that differ", () => {
    const prediction = new CachePrediction();
    for (let at = 0; at < 500; at++) {
      prediction.observe(64, at % 7 === 0 ? 0 : 64, 16);
      assert.ok(at < 20 || !prediction.isOff);
    }
  });
});
