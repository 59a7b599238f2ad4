import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { reference } from "#src/cli/reference.ts";
import { requestLine } from "#src/telemetry/requestRecord.ts";
import { REQUEST_FIELDS } from "#src/telemetry/requestFields.ts";

/** What a formatter may change: padding of table cells and rulers. */
function loose(markdown: string): string {
  return markdown
    .replace(/-{3,}/g, "---")
    .replace(/[ \t]+/g, " ")
    .replace(/\n+/g, "\n")
    .trim();
}

test("docs/reference.md is current (`kvasir reference` prints its tables)", () => {
  const page = readFileSync(new URL("../../../docs/reference.md", import.meta.url), "utf8");
  assert.ok(loose(page).endsWith(loose(reference())));
});

test("the fields that are explained are those of a request's line", () => {
  const line = requestLine(
    {
      requestId: "r",
      decisionId: null,
      kind: "request",
      method: "POST",
      path: "/v1/models",
      model: null,
      adapter: null,
      tenant: "anonymous",
      className: "standard",
      replica: null,
      attempt: 1,
      status: 200,
      code: null,
      fault: null,
      streamed: false,
      bodyBytes: 0,
      ttftMs: null,
      e2eMs: 1,
      queueMs: 0,
      promptTokens: null,
      cachedTokensPredicted: null,
      cachedTokensReported: null,
      outputTokens: null,
    },
    0,
  );
  assert.deepEqual(Object.keys(JSON.parse(line) as object), Object.keys(REQUEST_FIELDS));
});

test("docs/operations.md and the README name metrics, conditions and log lines that exist", () => {
  const names = new Set([...reference().matchAll(/`(\w+)`/g)].map(([, name]) => name));
  for (const file of [
    "docs/operations.md",
    "docs/kv-events.md",
    "docs/cache-index.md",
    "deploy/README.md",
    "README.md",
  ]) {
    const page = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
    for (const [, name = ""] of page.matchAll(/`(kvasir_\w+)`/g)) assert.ok(names.has(name), `${file}: ${name}`);
  }
});
