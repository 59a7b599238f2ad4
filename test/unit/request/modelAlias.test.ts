import assert from "node:assert/strict";
import { it } from "node:test";
import { servedModelName } from "#src/request/modelAlias.ts";

it("servedModelName follows aliases, and no circle", () => {
  const aliases = new Map([
    ["gpt-4", "large"],
    ["large", "llama-70b"],
    ["a", "b"],
    ["b", "a"],
    ["self", "self"],
  ]);
  assert.equal(servedModelName("gpt-4", aliases), "llama-70b");
  assert.equal(servedModelName("llama-70b", aliases), "llama-70b");
  assert.equal(servedModelName("a", aliases), "a");
  assert.equal(servedModelName("self", aliases), "self");
});
