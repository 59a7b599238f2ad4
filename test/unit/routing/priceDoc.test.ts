import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createPolicy, policyOptions } from "#src/routing/createPolicy.ts";
import { Pricer } from "#src/routing/price.ts";
import { DEFAULT_PRICE_SETTINGS } from "#src/routing/priceSettings.ts";
import { PriceTable } from "#src/routing/priceTable.ts";
import { TERMS } from "#src/routing/terms/term.ts";
import { choiceInput, decoding, H100, replica, request } from "./pool.ts";

const DOC = readFileSync(new URL("../../../docs/price.md", import.meta.url), "utf8");

/** Rows of the document's tables whose first cell is `name`, cell by cell. */
function rows(name: string): string[][] {
  return DOC.split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").map((cell) => cell.trim().replaceAll(/[`*]/g, "")))
    .filter((cells) => cells[1] === name);
}

const SHARED = { metrics: { atMs: 0, value: { prefixQueriedTokensTotal: 100, prefixHitTokensTotal: 50 } } };

function warm(sequences: number) {
  return replica({
    ...SHARED,
    earliestRemainingTokens: 40,
    load: {
      ...decoding(sequences, 1500, 200),
      sequences: sequences + 1,
      waitingSequences: 1,
      pendingPrefillTokens: 1000,
      pendingPrefillMs: 19.157,
      reservedKvTokens: sequences * 1700 + 1200,
      remainingOutputTokens: (sequences + 1) * 200,
    },
  });
}

const example = (sequences: number) =>
  choiceInput([warm(sequences), replica(SHARED)], {
    request: request(10_000),
    cachedTokens: [8000, 0],
    heldTokens: [450_000, 0],
    expectedOutputTokens: 101,
    classTargets: { ttftTargetMs: 200, tpotTargetMs: 50, weight: 2 },
  });

describe("docs/price.md", () => {
  it("states the coefficients of its example", () => {
    const { prefillBaseMs, prefillMsPerKtok, prefillMsPerKtok2, stepBaseMs, stepMsPerSequence, stepMsPerKtok } = H100;
    const stated = /`a = (.*?)`, `b = (.*?)`, `c2 = (.*?)`, `d = (.*?)`, `e = (.*?)`, `f = (.*?)`/.exec(DOC);
    assert.deepEqual(stated?.slice(1).map(Number), [
      prefillBaseMs,
      prefillMsPerKtok,
      prefillMsPerKtok2,
      stepBaseMs,
      stepMsPerSequence,
      stepMsPerKtok,
    ]);
  });

  it("works its example out as the code does", () => {
    const table = new PriceTable();
    new Pricer(DEFAULT_PRICE_SETTINGS).price(example(20), table);
    for (const [column, term] of TERMS.entries()) {
      const stated = rows(term).at(-1)!;
      for (const row of [0, 1])
        assert.equal(stated[2 + row], table.terms[row * TERMS.length + column]!.toFixed(3), `${term} of row ${row}`);
    }
    assert.deepEqual(rows("total").at(-1)!.slice(2, 4), [table.totals[0]!.toFixed(3), table.totals[1]!.toFixed(3)]);
  });

  it("names the winner of its example, and of the one with two decoding", () => {
    assert.equal(createPolicy("kvasir").choose(example(20)).index, 1);
    assert.equal(createPolicy("kvasir").choose(example(2)).index, 0);
  });

  it("states the weight of every term", () => {
    for (const term of TERMS) assert.equal(rows(term)[0]![4], String(DEFAULT_PRICE_SETTINGS.weights[term]), term);
  });

  it("states every other default", () => {
    for (const [key, option] of Object.entries(policyOptions("kvasir"))) {
      if (key.endsWith("Weight")) continue;
      assert.ok(DOC.includes(`\`${key}\``), key);
      const near = DOC.slice(Math.max(0, DOC.indexOf(`\`${key}\``) - 160), DOC.indexOf(`\`${key}\``) + 80);
      const figure = key === "staleAfterMs" ? "5 s" : String(option.default);
      assert.ok(near.includes(figure), `${key}: ${figure}`);
    }
  });
});
