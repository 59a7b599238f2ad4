import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

const root = join(import.meta.dirname, "../../..");

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The codes of the type that every error has to take one from. */
function declaredCodes(): string[] {
  const union = /export type ErrorCode =([^;]+);/.exec(read("src/errors/routerError.ts"))?.[1] ?? "";
  return [...union.matchAll(/"(\w+)"/g)].map(([, code = ""]) => code);
}

interface Row {
  readonly code: string;
  readonly statuses: ReadonlySet<string>;
}

function documented(): Row[] {
  const lines = read("docs/errors.md").split("\n");
  return lines.flatMap((line) => {
    const [, code, status = ""] = /^\| `(\w+)`\s*\| ([^|]+) \|/.exec(line) ?? [];
    return code === undefined ? [] : [{ code, statuses: new Set(status.split(",").map((each) => each.trim())) }];
  });
}

function sources(): string[] {
  return readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && path !== "errors/routerError.ts")
    .map((path) => read(`src/${path}`));
}

describe("docs/errors.md", () => {
  it("has each error code, and no other", () => {
    assert.deepEqual(
      documented().map(({ code }) => code),
      declaredCodes(),
    );
  });

  it("has only codes that the router can give", () => {
    const text = sources().join("\n");
    for (const code of declaredCodes()) assert.ok(code === "internal" || text.includes(`"${code}"`), code);
  });

  it("has the status of every error that is made with a fixed one", () => {
    const rows = new Map(documented().map(({ code, statuses }) => [code, statuses]));
    const made = /new RouterError\(\s*"(\w+)",[^;]*?httpStatus: (\d+)/g;
    const found = sources().flatMap((text) => [...text.matchAll(made)]);
    assert.ok(found.length > 10);
    for (const [, code = "", status = ""] of found) assert.ok(rows.get(code)?.has(status), `${code} with ${status}`);
  });
});
