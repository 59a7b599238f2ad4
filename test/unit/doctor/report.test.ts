import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { Examination } from "#src/doctor/examine.ts";
import { found } from "#src/doctor/findings/finding.ts";
import { jsonReport } from "#src/doctor/report/jsonReport.ts";
import { textReport } from "#src/doctor/report/textReport.ts";
import { exitCodeOf } from "#src/doctor/report/verdict.ts";
import { wrap } from "#src/doctor/report/wrap.ts";

const gone = parseEndpoint("http://10.0.0.1:8000");
const note = found("versions_differ", { model: "m", kind: "vllm" }, "Versions: vllm 1 (a); vllm 2 (b).");
const warning = found("kv_replay_missing", { replica: gone.name, kind: "vllm" }, "No replay.");
const error = found("engine_unreachable", { replica: gone.name }, "Refused.");
const examination: Examination = {
  sightings: [{ kind: "unreachable", endpoint: gone, why: "Refused." }],
  findings: [warning, error, note],
};

describe("the doctor's report", () => {
  it("tells engine by engine, the worst first, then what concerns several", () => {
    const text = textReport(examination, { colour: false, columns: 200 });
    assert.equal(
      text,
      [
        "10.0.0.1:8000",
        "  error  engine_unreachable",
        "         Refused.",
        `         Effect: ${error.effect}`,
        `         Mend: ${error.mend}`,
        "  warn   kv_replay_missing",
        "         No replay.",
        `         Effect: ${warning.effect}`,
        `         Mend: ${warning.mend}`,
        "",
        "model m",
        "  info   versions_differ",
        `         ${note.message}`,
        `         Effect: ${note.effect}`,
        `         Mend: ${note.mend}`,
        "",
        "1 engine: 1 error, 1 warning, 1 note.",
        "",
      ].join("\n"),
    );
    assert.ok(!text.includes("\u001B"));
    assert.ok(textReport(examination, { colour: true, columns: 80 }).includes("\u001B[31merror\u001B[0m"));
    assert.equal(
      textReport({ sightings: [], findings: [] }, { colour: false, columns: 80 }),
      "0 engines: nothing found.\n",
    );
  });

  it("is JSON for machines", () => {
    assert.deepEqual(JSON.parse(jsonReport(examination)), {
      counts: { error: 1, warn: 1, info: 1 },
      engines: [{ name: "10.0.0.1:8000", url: "http://10.0.0.1:8000", kind: null }],
      findings: [warning, error, note],
    });
  });

  it("exits with 1 for errors, and for warnings if strict", () => {
    assert.deepEqual([exitCodeOf([error], false), exitCodeOf([warning, note], false)], [1, 0]);
    assert.deepEqual([exitCodeOf([warning], true), exitCodeOf([note], true), exitCodeOf([], true)], [1, 0, 0]);
  });

  it("breaks lines between words only, so that flags can be copied", () => {
    const flag = `--flag='${"x".repeat(90)}'`;
    const lines = wrap(`Start it with ${flag} and then wait until it is ready to serve requests again`, 40);
    assert.deepEqual(lines.slice(0, 2), ["Start it with", flag]);
    assert.ok(lines.every((line) => line.length <= 40 || line === flag));
  });
});
