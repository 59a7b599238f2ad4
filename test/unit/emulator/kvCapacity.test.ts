import assert from "node:assert/strict";
import { it } from "node:test";
import { hardwareFor } from "#src/emulator/kvCapacity.ts";
import { GENERIC_PRIOR, PRIORS } from "#src/hardware/stepTimes.ts";

it("a model by its served name and a GPU give times and KV memory", () => {
  const known = hardwareFor("Qwen/Qwen3-32B", "h200");
  assert.equal(known.prior, "qwen3-32b/h200_tp2");
  assert.equal(Math.round(known.kvTokens / 1000), 766);
  assert.equal(hardwareFor("llama-3.1-70b", "h100").prior, "llama-3.1-70b/h100_tp4");
  assert.equal(hardwareFor("llama-3.1-70b", "h100_tp8").prior, "llama-3.1-70b/h100_tp8");
});

it("every pair in the table leaves room for a context", () => {
  for (const key of PRIORS.keys()) {
    const [model = "", gpu = ""] = key.split("/");
    const { prior, kvTokens, contextTokens } = hardwareFor(model, gpu);
    assert.equal(prior, key);
    assert.ok(kvTokens >= contextTokens || kvTokens > 30_000, `${key}: ${kvTokens}`);
  }
});

it("what is not in the table is said to be so", () => {
  const unknown = hardwareFor("my-model", "h100");
  assert.deepEqual([unknown.prior, unknown.times], [null, GENERIC_PRIOR]);
  assert.equal(hardwareFor("qwen3-32b", "x99").prior, null);
});
