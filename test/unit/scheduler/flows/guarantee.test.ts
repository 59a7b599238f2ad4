import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { PREDEFINED_CLASSES } from "#src/scheduler/classes.ts";
import { Counter, job } from "./lineHarness.ts";

test("a higher class goes first", () => {
  const counter = new Counter();
  counter.queue("t", 100, "batch");
  counter.queue("t", 100, "standard");
  counter.queue("t", 100, "interactive");
  counter.serve(3);
  assert.deepEqual(
    counter.served.map(({ job }) => job.request.className),
    ["interactive", "standard", "batch"],
  );
});

test("no class starves: others get a bounded number of tokens before its next request", () => {
  const own = fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 5, maxLength: 20 });
  const others = fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(own, others, fc.constantFrom(0.02, 0.05, 0.2), (batch, interactive, share) => {
      const classes = PREDEFINED_CLASSES.map((each) => ({ ...each, guaranteedShare: share }));
      const counter = new Counter({ classes });
      for (const each of batch) counter.queue("b", each, "batch");
      const greatest = Math.max(...batch, 1_000);
      const boundTokens = (2 * greatest) / share + Math.max(...interactive);
      let sinceTokens = 0;
      for (let at = 0, left = batch.length; left > 0; at++) {
        // There is always another interactive request.
        counter.queue("i", interactive[at % interactive.length]!, "interactive");
        counter.serve();
        const { job } = counter.served.at(-1)!;
        if (job.request.className === "batch") {
          sinceTokens = 0;
          left--;
        } else sinceTokens += job.tokens;
        assert.ok(sinceTokens <= boundTokens, `batch waited for ${sinceTokens} tokens, more than ${boundTokens}`);
      }
    }),
    { numRuns: 60 },
  );
});

test("a guarantee is a share, not more: the higher class keeps the rest", () => {
  const counter = new Counter();
  for (let at = 0; at < 1_000; at++) counter.queue("b", 1_000, "batch");
  for (let at = 0; at < 1_000; at++) counter.queue("i", 1_000, "interactive");
  counter.serve(1_000);
  const batch = counter.tokensOf("b") / 1_000;
  assert.ok(batch >= 45 && batch <= 55, `${batch} of 1000 for a share of 0.05`);
});

test("what was spare is not held against a class, and a claim ends with the last that waits", () => {
  const counter = new Counter();
  for (let at = 0; at < 100; at++) counter.charge(job("b", 1_000, "batch"));
  for (let at = 0; at < 100; at++) counter.queue("i", 1_000, "interactive");
  counter.queue("b", 1_000, "batch");
  counter.serve(60);
  const first = counter.served.findIndex(({ job }, at) => at >= 100 && job.request.className === "batch");
  assert.ok(first >= 100 && first <= 142, `served at ${first}`);
  // Nobody of the class waited while the others were served, so it has no claim when one comes.
  counter.serve(30);
  counter.queue("b", 1_000, "batch");
  counter.serve();
  assert.equal(counter.served.at(-1)!.job.request.className, "interactive");
});

test("classes of one priority share by weight", () => {
  const [interactive] = PREDEFINED_CLASSES;
  const classes = [
    { ...interactive!, name: "gold", weight: 3 },
    { ...interactive!, name: "silver", weight: 1 },
  ];
  const counter = new Counter({ classes });
  for (let at = 0; at < 100; at++) for (const name of ["gold", "silver"]) counter.queue(name, 100, name);
  counter.serve(80);
  const gold = counter.tokensOf("gold") / 100;
  assert.ok(gold >= 59 && gold <= 61, `${gold} of 80`);
});
