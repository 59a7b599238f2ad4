import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPolicy } from "#src/routing/createPolicy.ts";
import { recordDecision } from "#src/routing/decision.ts";
import type { Decision } from "#src/routing/decision.ts";
import { explain, explainLine } from "#src/routing/explain.ts";
import type { ChoiceInput, Policy } from "#src/routing/policy.ts";
import { TERMS } from "#src/routing/terms/term.ts";
import { choiceInput, decoding, fixedLatency, replica, request } from "./pool.ts";

function decide(policy: Policy, input: ChoiceInput): Decision {
  return recordDecision({
    id: "d-1",
    requestId: input.request.id,
    model: input.request.model,
    policy: policy.name,
    input,
    choice: policy.choose(input),
    eligibility: "normal",
    ineligible: [{ replicaId: "sick:8000", reason: "quarantined" }],
    attempt: 2,
  });
}

const busy = () => replica({ id: "busy:8000", incarnation: 7, load: decoding(30, 1000, 200), metrics: { atMs: 600 } });
const free = () => replica({ id: "free:8000", incarnation: 9 });
const broken = () =>
  replica({ id: "broken:8000", latency: { ...fixedLatency(), stepMs: () => Number.NaN }, load: decoding(1, 1, 1) });

describe("a decision", () => {
  it("keeps what the policy's next choice overwrites", () => {
    const policy = createPolicy("kvasir");
    const decision = decide(policy, choiceInput([busy(), free()], { cachedTokens: [500, 0], nowMs: 1000 }));
    const before = JSON.stringify(explain(decision));
    policy.choose(choiceInput([free(), free(), busy()], { request: request(9000) }));
    assert.equal(JSON.stringify(explain(decision)), before);
  });

  it("says everything by name", () => {
    const said = explain(
      decide(createPolicy("kvasir"), choiceInput([busy(), free()], { cachedTokens: [500, 0], nowMs: 1000 })),
    );
    assert.equal(said.winner, "free:8000");
    assert.equal(said.runnerUp, "busy:8000");
    assert.equal(said.branch, "cheapest");
    assert.equal(said.attempt, 2);
    assert.equal(said.atMs, 1000);
    assert.equal(said.promptTokens, 1000);
    assert.equal(said.expectedOutputTokens, 100);
    assert.deepEqual(said.tie, { candidates: 1, draw: null });
    assert.deepEqual(said.ineligible, [{ replicaId: "sick:8000", reason: "quarantined" }]);
    const [first, second] = said.candidates;
    assert.equal(first?.incarnation, 7);
    assert.equal(first?.cachedTokens, 500);
    assert.equal(first?.factsAgeMs, 400);
    assert.equal(second?.factsAgeMs, null);
    assert.deepEqual(Object.keys(first?.terms ?? {}), [...TERMS]);
    assert.equal(second?.terms?.restore.basis, "not_applicable");
  });

  it("has terms that add up to its totals by its weights", () => {
    const said = explain(decide(createPolicy("kvasir"), choiceInput([busy(), free()])));
    for (const { terms, totalMs } of said.candidates) {
      const sum = TERMS.reduce((total, term) => total + said.weights![term] * terms![term].ms!, 0);
      assert.ok(Math.abs(sum - totalMs!) < 1e-5 * totalMs!, `${sum} is not ${totalMs}`);
    }
  });

  it("tells which of how many equals was drawn", () => {
    const { tie } = explain(decide(createPolicy("kvasir"), choiceInput([free(), free(), busy()])));
    assert.equal(tie.candidates, 2);
    assert.ok(tie.draw !== null && tie.draw >= 0 && tie.draw < 1);
  });

  it("is valid JSON where a price could not be computed, and that replica is not chosen", () => {
    const said = explain(decide(createPolicy("kvasir"), choiceInput([broken(), busy()])));
    assert.equal(said.winner, "busy:8000");
    assert.equal(said.candidates[0]?.totalMs, null);
    assert.equal(said.candidates[0]?.terms?.decode.ms, null);
    assert.doesNotMatch(JSON.stringify(said), /NaN|Infinity/);
  });

  it("has scores and no terms under a policy without prices", () => {
    const said = explain(decide(createPolicy("prefix-scorer"), choiceInput([busy(), free(), free()])));
    assert.equal(said.weights, null);
    assert.equal(said.candidates[0]?.terms, null);
    const scores = said.candidates.map(({ score }) => score ?? Number.NaN);
    assert.ok(scores[1]! > scores[0]!);
    assert.equal(said.runnerUp, "free:8000");
  });

  it("has no runner-up when alone or by chance", () => {
    assert.equal(explain(decide(createPolicy("kvasir"), choiceInput([busy()]))).runnerUp, null);
    assert.equal(explain(decide(createPolicy("random"), choiceInput([busy(), free()]))).runnerUp, null);
  });
});

describe("explainLine", () => {
  it("puts winner and runner-up with all their terms on one line", () => {
    const line = explainLine(decide(createPolicy("kvasir"), choiceInput([busy(), free()], { cachedTokens: [500, 0] })));
    assert.match(
      line,
      /^decision=d-1 policy=kvasir branch=cheapest attempt=2 candidates=2 tied=1 \| winner=free:8000 /,
    );
    assert.match(line, / \| runner-up=busy:8000 total=[\d.]+ms cached=500 queue=[\d.]+ms\/prior /);
    for (const term of ["queue", "prefill", "decode", "interference", "eviction", "preemption"])
      assert.equal(line.split(` ${term}=`).length, 3, term);
  });

  it("is safe in a header, whatever a replica is called", () => {
    const line = explainLine(decide(createPolicy("random"), choiceInput([replica({ id: "a\r\nx-evil: 1\u00e9" })])));
    assert.match(line, /^[\x20-\x7e]+$/);
  });
});
