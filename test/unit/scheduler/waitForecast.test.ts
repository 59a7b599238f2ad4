import assert from "node:assert/strict";
import { test } from "node:test";
import { ClassTable } from "#src/scheduler/classes.ts";
import { ModelShare } from "#src/scheduler/flows/modelShare.ts";
import { WaitForecast } from "#src/scheduler/waitForecast.ts";
import { job } from "./flows/lineHarness.ts";
import type { Job } from "./flows/lineHarness.ts";

const ANY = { model: "llama", className: "standard", tenant: "b" };

test("a wait is the tokens before over the rate at which tokens were bound while somebody waited", () => {
  const share = new ModelShare<Job>({ classes: new ClassTable(), tenantWeight: () => 1 });
  const forecast = new WaitForecast();
  assert.equal(forecast.waitMs(share, ANY, 0), 0, "nobody waits");
  for (let at = 0; at < 20; at++) share.arrives(job("a", 500));
  forecast.begins("llama", 0);
  assert.equal(forecast.waitMs(share, ANY, 0), null, "nothing was seen");
  for (let ms = 100; ms <= 5_000; ms += 100) forecast.bound("llama", 200, ms);
  // Two tokens a millisecond; one of the other tenant's requests goes first.
  assert.ok(Math.abs(forecast.waitMs(share, ANY, 5_000)! - 250) < 25);
  const same = forecast.waitMs(share, { ...ANY, tenant: "a" }, 5_000)!;
  assert.ok(Math.abs(same - 5_000) < 500);
  assert.equal(forecast.waitMs(share, { ...ANY, className: "interactive" }, 5_000), 0, "it goes before all");
  assert.ok(forecast.waitMs(share, { ...ANY, className: "batch" }, 5_000)! > 4_500, "all go before it");
  const flows = share.classOf("standard").flows.size;
  forecast.waitMs(share, { ...ANY, tenant: "somebody new" }, 5_000);
  assert.equal(share.classOf("standard").flows.size, flows, "a question makes no flow");
});

test("rates are kept for so many models; those for which somebody waits stay", () => {
  const share = new ModelShare<Job>({ classes: new ClassTable(), tenantWeight: () => 1 });
  share.arrives(job("a", 500));
  share.arrives(job("a", 500));
  const forecast = new WaitForecast();
  forecast.begins("kept", 0);
  for (let ms = 100; ms <= 5_000; ms += 100) forecast.bound("kept", 200, ms);
  for (let at = 0; at < 2_000; at++) {
    forecast.begins(`m${at}`, 5_000);
    forecast.ends(`m${at}`, 5_000);
  }
  assert.ok(forecast.models <= 1_000);
  assert.notEqual(forecast.waitMs(share, { ...ANY, model: "kept" }, 5_000), null);
});
