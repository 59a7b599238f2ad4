import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { cutAtLines, keepsToLines } from "#src/request/tokens/text/lineCuts.ts";
import { tokenizerOf } from "./recordedFolder.ts";

const FRAGMENTS =
  "a|B|12|\n|\n\n|\nA|\n1|\r\n|\r| |  |\t|!|?\n|(|é|e\u0301|\u0301|日|'s|\u0085|\u2028|/|\n/|\n\u0301| \n x|.\n\nThe".split(
    "|",
  );
const lines = fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 60 }).map((parts) => parts.join(""));

const WORDS = "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*";
const SPACES = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

describe("cuts at lines", () => {
  test("change no token", async () => {
    const tokenizer = await tokenizerOf("bytes");
    const ids = (text: string): number[] => [...tokenizer.encode(text, false)];
    fc.assert(
      fc.property(lines, fc.integer({ min: 1, max: 20 }), (text, length) => {
        assert.deepEqual(cutAtLines(text, length).flatMap(ids), ids(text));
      }),
      { numRuns: 500 },
    );
  });

  test("lose nothing, are as long as wanted, and are where a line begins with a letter or digit", () => {
    fc.assert(
      fc.property(lines, fc.integer({ min: 1, max: 20 }), (text, length) => {
        const parts = cutAtLines(text, length);
        assert.equal(parts.join(""), text);
        for (const part of parts.slice(0, -1)) assert.ok(part.length >= length && part.endsWith("\n"));
        for (const part of parts.slice(1)) assert.match(part, /^[A-Za-z0-9]/);
      }),
    );
  });

  test("are the same up to where two texts differ", () => {
    const common = Array.from({ length: 50 }, (_, at) => `Line ${at}\n`).join("");
    const [a, b] = [cutAtLines(`${common}one`, 40), cutAtLines(`${common}another`, 40)];
    assert.deepEqual(a.slice(0, -1), b.slice(0, -1));
    assert.ok(a.length > 5);
  });

  test("are made for patterns of which it was shown only", () => {
    assert.ok(keepsToLines([`${WORDS}|${SPACES}`]));
    assert.ok(keepsToLines(["\\p{N}{1,3}", `${WORDS}|${SPACES}`]));
    const others = [
      [`${WORDS}|\\s+(?!\\S)|\\s*[\\r\\n]+|\\s+`],
      [`${WORDS}|\\s+(?!\\S)|\\s+`],
      ["\\p{N}{1,3}"],
      [`[^\\n]+|${SPACES}`],
      [`.\\n.|${WORDS}|${SPACES}`],
      [],
    ];
    for (const patterns of others) assert.equal(keepsToLines(patterns), false, patterns.join(" then "));
  });
});
