import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { parsePrometheusText } from "#src/engines/prometheusText.ts";

const read = (text: string) => parsePrometheusText(text, new Set(["a:b", "plain"])).samples("a:b");

describe("Prometheus text", () => {
  it("reads what the format allows", () => {
    assert.deepEqual(read("a:b 1"), [{ labels: {}, value: 1 }]);
    assert.deepEqual(read("  a:b \t 1.5e+09 1700000000000"), [{ labels: {}, value: 1.5e9 }]);
    assert.deepEqual(read("a:b{} -0.5\r"), [{ labels: {}, value: -0.5 }]);
    assert.deepEqual(read('a:b{x="1",y="2",} 3'), [{ labels: { x: "1", y: "2" }, value: 3 }]);
    assert.deepEqual(read('a:b { x = "1" , y = "2" } 3'), [{ labels: { x: "1", y: "2" }, value: 3 }]);
    assert.deepEqual(read('a:b{x="} 9, #"} 3 # {trace_id="t"} 0.5 1.7e9'), [{ labels: { x: "} 9, #" }, value: 3 }]);
    assert.deepEqual(read(String.raw`a:b{x="q\"b\\n\nl"} 1`), [{ labels: { x: 'q"b\\n\nl' }, value: 1 }]);
    assert.deepEqual(read(String.raw`a:b{x="C:\dir"} 1`), [{ labels: { x: String.raw`C:\dir` }, value: 1 }]);
  });

  it("reads the values that are no finite number", () => {
    const values = read("a:b NaN\na:b +Inf\na:b -Inf\na:b Inf").map((sample) => sample.value);
    assert.deepEqual(values, [Number.NaN, Infinity, -Infinity, Infinity]);
  });

  it("passes over comments, blank lines, unwanted names and names that only begin alike", () => {
    const scrape = parsePrometheusText(
      "# TYPE a:b gauge\n\n \t\na:bc 1\na:b_total{} 2\na: 4\n# EOF\na:b 3",
      new Set(["a:b"]),
    );
    assert.deepEqual(scrape.samples("a:b"), [{ labels: {}, value: 3 }]);
    assert.equal(scrape.malformedLines, 0);
  });

  it("counts lines that are no samples, and goes on behind them", () => {
    for (const bad of ["a:b", "a:b{", 'a:b{x="1"', "a:b{x=1} 2", "a:b one", "a:b 0x10", "a:b{}", "{ 1", "a:b 1_000"]) {
      const scrape = parsePrometheusText(`${bad}\na:b 5\n`, new Set(["a:b"]));
      assert.equal(scrape.malformedLines, 1, bad);
      assert.deepEqual(scrape.samples("a:b"), [{ labels: {}, value: 5 }], bad);
    }
  });

  it("does not let a label run over into the next line", () => {
    assert.deepEqual(read('a:b{x="1\na:b{y="2"} 5'), [{ labels: { y: "2" }, value: 5 }]);
  });

  const labelName = fc.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_]{0,8}$/).filter((name) => name !== "__proto__");
  const sample = fc.record({
    name: fc.constantFrom("a:b", "plain", "other"),
    labels: fc.dictionary(labelName, fc.string({ unit: "grapheme" }), { maxKeys: 4, noNullPrototype: true }),
    value: fc.double(),
  });

  it("reads back whatever is written by the rules", () => {
    fc.assert(
      fc.property(fc.array(sample), fc.boolean(), (samples, spaced) => {
        const scrape = parsePrometheusText(
          samples.map((each) => write(each, spaced)).join("\n"),
          new Set(["a:b", "plain"]),
        );
        for (const name of ["a:b", "plain"]) {
          const expected = samples.filter((each) => each.name === name).map(({ labels, value }) => ({ labels, value }));
          assert.deepEqual(
            scrape.samples(name),
            expected.map((each) => ({ ...each, value: normal(each.value) })),
          );
        }
        assert.equal(scrape.malformedLines, 0);
      }),
    );
  });

  it("never throws", () => {
    const junk = fc.string({
      unit: fc.constantFrom("a:b", "{", "}", '"', "\\", "=", ",", " ", "\n", "#", "1", "é", "x"),
    });
    fc.assert(fc.property(junk, (text) => void read(text)));
  });
});

function write(sample: { name: string; labels: Record<string, string>; value: number }, spaced: boolean): string {
  const escape = (value: string) => value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
  const pairs = Object.entries(sample.labels).map(([name, value]) => `${name}="${escape(value)}"`);
  const labels = pairs.length > 0 ? `{${pairs.join(spaced ? " , " : ",")}}` : "";
  const value = Number.isNaN(sample.value) ? "NaN" : String(sample.value).replace("Infinity", "Inf");
  return `${sample.name}${labels} ${value}${spaced ? " 1700000000000" : ""}`;
}

/** Text has no negative zero that would be worth telling apart. */
function normal(value: number): number {
  return Object.is(value, -0) ? 0 : value;
}
