import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { engines } from "./engines.ts";
import { complete, TokenPrompts } from "./prompts.ts";
import { setUp } from "./routerSetup.ts";
import type { Kind } from "./truth.ts";

describe("predicted cached tokens", () => {
  it("are what the engines report, to within a block, in 99 of 100 answers of a quiet fleet", async () => {
    await using setup = await setUp(engines);
    const make = new TokenPrompts(6);
    const kinds: Kind[] = [{}, {}, {}, { adapter: "adapter-a" }, { adapter: "adapter-b" }, { salt: "tenant-2" }];
    const stems = Array.from({ length: 8 }, () => make.ids(100 + make.below(900)));
    const requests = 150;
    const off: string[] = [];
    let reportedTokens = 0;
    for (let at = 0; at < requests; at++) {
      const stem = stems[make.below(stems.length)]!;
      const ids = [...stem.slice(0, 32 + make.below(stem.length)), ...make.ids(1 + make.below(100))];
      const answer = await complete(setup.url, ids, kinds[make.below(kinds.length)], 1 + make.below(8));
      const [decision] = setup.router.decisions.recent(1);
      const predicted = decision!.cachedTokens(decision!.chosen);
      const reported = answer.usage.prompt_tokens_details.cached_tokens;
      reportedTokens += reported;
      if (Math.abs(predicted - reported) > engines[0]!.blockTokens) off.push(`${predicted} for ${reported}`);
    }
    assert.ok(reportedTokens > 100 * requests, `there was little to predict: ${reportedTokens} tokens`);
    assert.ok(off.length <= requests / 100, `${off.length} of ${requests} are off: ${off.join(", ")}`);
    for (const { cachePrediction } of setup.router.fleet.replicas()) assert.equal(cachePrediction.isOff, false);
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    const sum = (name: string): number =>
      [...metrics.matchAll(new RegExp(`^${name}\\{[^}]*\\} (\\d+)`, "gm"))].reduce((all, [, n]) => all + Number(n), 0);
    assert.equal(sum("kvasir_replica_cached_tokens_reported_total"), reportedTokens);
    assert.ok(sum("kvasir_replica_cached_tokens_error_total") <= requests * engines[0]!.blockTokens);
  });
});
