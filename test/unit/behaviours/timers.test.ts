import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

const src = join(import.meta.dirname, "../../../src");

/** How JavaScript and Node let time decide something. */
const TIMER =
  /\bset(?:Timeout|Interval)\(|AbortSignal\.timeout\(|\.(?:headersTimeout|requestTimeout|keepAliveTimeout) =/;

describe("the data path", () => {
  it("has no timers but the one that looks at the configured limits, so that no limit is hidden (17)", () => {
    const found = ["dispatch", "gateway", "scheduler"].flatMap((room) =>
      readdirSync(join(src, room), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .map((name) => `${room}/${name}`)
        .filter((path) => TIMER.test(readFileSync(join(src, path), "utf8"))),
    );
    // Waits a moment for the reset that follows a FIN; it shortens nothing.
    assert.deepEqual(found, ["dispatch/engineConnection.ts"]);
  });
});
