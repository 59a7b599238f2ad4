import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

const docs = join(import.meta.dirname, "../../../docs");
const live = join(import.meta.dirname, "../../live/behaviours");

/** All but those that need pairs of engines. */
const IN_SCOPE = [...Array.from({ length: 33 }, (_, at) => at + 1), ...Array.from({ length: 5 }, (_, at) => at + 38)];

interface Row {
  readonly number: number;
  readonly proofs: readonly { readonly path: string; readonly title: string }[];
}

function rows(): Row[] {
  return readFileSync(join(docs, "behaviours.md"), "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, number, , , shown = ""] = line.split("|").map((cell) => cell.trim());
      if (number === undefined || !/^\d+$/.test(number)) return [];
      const proofs = shown.split("<br>").map((proof) => {
        const [, path = "", title = ""] = /^\[[\w-]+\]\((\S+)\) › (.+)$/.exec(proof) ?? assert.fail(proof);
        return { path, title };
      });
      return [{ number: Number(number), proofs }];
    });
}

describe("docs/behaviours.md", () => {
  it("has each behaviour that is in scope, in order", () => {
    assert.deepEqual(
      rows().map(({ number }) => number),
      IN_SCOPE,
    );
  });

  it("names tests that there are", () => {
    for (const { number, proofs } of rows()) {
      for (const { path, title } of proofs) {
        const file = join(docs, path);
        assert.ok(existsSync(file), `${number}: ${path}`);
        assert.ok(readFileSync(file, "utf8").includes(`"${title}"`), `${number}: ${path} has no "${title}"`);
      }
    }
  });

  it("shows each on a whole router, and leaves out no test of these", () => {
    const tested = readdirSync(live)
      .filter((name) => name.endsWith(".test.ts"))
      .flatMap((name) => [...readFileSync(join(live, name), "utf8").matchAll(/describe\("(\d+)\. /g)])
      .map(([, number]) => Number(number));
    assert.deepEqual(
      tested.toSorted((a, b) => a - b),
      IN_SCOPE,
    );
    for (const { number, proofs } of rows())
      assert.ok(proofs.some(({ path, title }) => path.includes("live/behaviours/") && title.startsWith(`${number}. `)));
  });
});
