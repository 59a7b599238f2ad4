import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { FINDINGS, type FindingId } from "#src/doctor/findings/catalogue.ts";
import { found, type FindingKind } from "#src/doctor/findings/finding.ts";

const KINDS = Object.entries(FINDINGS) as [FindingId, FindingKind][];

describe("docs/operations.md", () => {
  it("has every finding with its severity and effect, and no other", () => {
    const text = readFileSync(join(import.meta.dirname, "../../../docs/operations.md"), "utf8");
    const rows = [...text.matchAll(/^\| `(\w+)` +\| (\w+) +\| (.+?) +\|$/gm)].map(([, ...cells]) => cells);
    assert.deepEqual(
      rows,
      KINDS.map(([id, { severity, effect }]) => [id, severity, effect]),
    );
  });
});

describe("a finding", () => {
  it("says what mends it for each kind of engine on which it occurs", () => {
    for (const [id, { mend }] of KINDS) {
      if (typeof mend === "string") continue;
      for (const kind of Object.keys(mend) as ("vllm" | "sglang")[]) assert.ok(found(id, { kind }, "seen").mend);
      // vLLM and SGLang are what most fleets are made of; only what vLLM alone has may lack the other.
      assert.ok("vllm" in mend && ("sglang" in mend || id.startsWith("hash_")), id);
    }
  });

  it("names all mends where engines of several kinds are concerned", () => {
    const { mend } = found("block_sizes_differ", { model: "m" }, "seen");
    assert.match(mend ?? "", /vllm: .*--block-size.*; sglang: .*--page-size/);
  });

  it("has no mend where none is known for the kind", () => {
    assert.equal(found("kv_replay_missing", { kind: "llamacpp" }, "seen").mend, null);
  });
});
