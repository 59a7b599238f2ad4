import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { readNormalizer } from "#src/request/tokens/text/normalizer.ts";

const nfc = readNormalizer({ type: "NFC" })!;

/** Letters and marks that compose, reorder or stand apart, and text that needs nothing. */
const KNOWN = fc.constantFrom(
  ..."a|e|E|\u00e9|e\u0301|\u0301|\u0327|\u0323|\u0307|q|A\u030a|\u212b|\ufb01|\u1100|\u1161|\u11a8|\uac00|\ud55c".split(
    "|",
  ),
  ..."\u0915|\u093c|\u0958|\u0bbf|\u0e48|日本|語|か\u3099|\u304c|👍🏽|it’s — | |\n|0".split("|"),
);
/** Combining marks younger than the tables of Hugging Face's tokenizers. */
const YOUNGER = fc.constantFrom(
  "\u0898",
  "\u08ca",
  "\u1abf",
  "\u1df6",
  "\ua82c",
  "\u{10eab}",
  "\u{11070}",
  "\u{1e5ee}",
);
const joined = (parts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.array(parts, { maxLength: 12 }).map((all) => all.join(""));

describe("the normal form NFC", () => {
  test("is Unicode's, whatever the text", () => {
    let changed = 0;
    fc.assert(
      fc.property(joined(KNOWN), (text) => {
        if (text.normalize("NFC") !== text) changed++;
        assert.equal(nfc(text), text.normalize("NFC"));
      }),
      { numRuns: 3000 },
    );
    assert.ok(changed > 500, `only ${changed} texts were not in normal form`);
  });

  test("lets nothing past a character that engines do not know", () => {
    let differs = 0;
    fc.assert(
      fc.property(joined(KNOWN), YOUNGER, joined(KNOWN), (before, mark, after) => {
        const text = before + mark + after;
        if (text.normalize("NFC") !== nfc(text)) differs++;
        assert.equal(nfc(text), before.normalize("NFC") + mark + after.normalize("NFC"));
      }),
      { numRuns: 3000 },
    );
    assert.ok(differs > 50, `only in ${differs} texts it made a difference`);
  });
});
