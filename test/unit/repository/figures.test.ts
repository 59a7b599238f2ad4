import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CASES } from "../../../bench/figures/cases.ts";
import type { Outcome } from "../../../bench/figures/contest.ts";
import { measure } from "../../../bench/figures/measure.ts";
import type { Measures } from "../../../bench/figures/measure.ts";
import { judge } from "../../../bench/figures/targets.ts";

function outcome(key: string, kvasir: readonly Measures[], baselines: Record<string, readonly Measures[]>): Outcome {
  return {
    case: CASES.find((each) => each.key === key)!,
    kvasir,
    baselines: Object.entries(baselines).map(([name, runs]) => ({ name, router: name, runs })),
    ablations: [],
  };
}

describe("the table of figures", () => {
  it("holds each figure against the baseline that is best at it, seed by seed", () => {
    const judged = judge([
      outcome("azure-code", [{ ttftP99: 70 }, { ttftP99: 90 }], {
        slow: [{ ttftP99: 500 }, { ttftP99: 500 }],
        best: [{ ttftP99: 100 }, { ttftP99: 100 }],
      }),
    ]);
    assert.equal(judged.length, 1);
    const [{ against, reached, passes }] = judged as [(typeof judged)[number]];
    assert.equal(against, "over best");
    assert.ok(Math.abs(reached.mean - 0.8) < 1e-9);
    assert.equal(passes, true);
  });

  it("calls what is not reached missed, also by a request that never got an answer", () => {
    const best = [{ ttftP99: 100 }, { ttftP99: 100 }];
    for (const ttftP99 of [86, Number.POSITIVE_INFINITY])
      assert.equal(judge([outcome("azure-code", [{ ttftP99 }, { ttftP99 }], { best })])[0]!.passes, false);
  });

  it("measures several routers against one, by difference where a difference is asked", () => {
    const judged = judge([
      outcome("routers-1", [{ cachedShare: 0.5, loadVariation: 0.3 }], {}),
      outcome("routers-4", [{ cachedShare: 0.48, loadVariation: 0.36 }], {}),
    ]);
    assert.deepEqual(
      judged.map(({ figure, reached, passes }) => [figure, Number(reached.mean.toFixed(6)), passes]),
      [
        ["cached share", 0.96, true],
        ["load CV", 0.06, false],
      ],
    );
  });

  it("finds least-connections sending into full batches, and Kvasir not", () => {
    const share = (router: string) =>
      measure({ caseKey: "slots-few", router, seed: 1, traceDirectory: "", limit: 2_000 })["intoFullBatch"]!;
    assert.ok(share("least-connections") > 0.01);
    assert.equal(share("kvasir"), 0);
  });
});
