import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RouterError } from "#src/errors/routerError.ts";
import { explain, explainLine } from "#src/routing/explain.ts";
import type { AttemptOutcome } from "#src/scheduler/outcome.ts";
import type { Scheduler } from "#src/scheduler/scheduler.ts";
import type { Placement } from "#src/scheduler/placement.ts";
import { answered, FAILED, made, NOT_REPORTED, ownLoad, submit } from "../harness.ts";
import { makeBusy, pairFleet, replicaOf, splittable, where } from "./pairFleet.ts";

const LEASE_MS = 30_000;
const P_AND_D = [
  { name: "p0", role: "prefill" },
  { name: "d0", role: "decode" },
] as const;

/** A decode side with others at work, whom a long prompt would hold up. */
function busyDecode(decoding = 40) {
  const fleet = pairFleet(P_AND_D);
  makeBusy(fleet, "d0", decoding);
  return made(fleet, { policy: "kvasir" });
}

function placed(scheduler: Scheduler, blocks = 500, streamed = true): Placement {
  const { placement } = submit(scheduler, 0, splittable(1, blocks), { streamed });
  assert.ok(placement);
  return placement;
}

describe("one replica or two", () => {
  it("splits a long prompt where others decode, and explains both legs and the link", () => {
    const { scheduler } = busyDecode();
    const { placement } = submit(scheduler, 0, splittable(1, 500));
    assert.equal(where(placement), "p0>d0");
    const explained = explain(placement!.decision);
    const pair = explained.candidates.find(({ chosen }) => chosen);
    assert.equal(pair?.replica, "d0");
    assert.deepEqual(
      { prefill: pair?.pair?.prefill, link: pair?.pair?.link, bytes: pair?.pair?.transferBytes },
      { prefill: "p0", link: "host", bytes: 8001 * 131_072 },
    );
    assert.ok((pair?.terms?.transfer.ms ?? 0) > 0);
    assert.equal(explained.branch, "pair");
    assert.equal(explained.runnerUp, "d0");
    assert.match(explainLine(placement!.decision), /winner=p0->d0 link=host .* \| runner-up=d0 total=/);
  });

  it("does not split a short prompt, nor one whose prompt is cached", () => {
    const { scheduler } = busyDecode(3);
    const short = submit(scheduler, 0, splittable(2, 2));
    assert.equal(where(short.placement), "d0");
    assert.equal(short.placement?.whole, "not_worth_it");
    assert.equal(short.placement?.decision.pairAt(short.placement.decision.runnerUp ?? -1)?.prefillId, "p0");

    const { fleet, scheduler: again } = busyDecode();
    const long = splittable(3, 500);
    fleet.index.confirm(fleet.index.place(replicaOf(fleet, "d0").index, long.identity, 0), 0);
    assert.equal(where(submit(again, 1, long).placement), "d0");
  });

  it("takes the nearer of two idle prefill sides", () => {
    const fleet = pairFleet([
      { name: "far", role: "prefill", labels: { zone: "z", rack: "r2", host: "h2" } },
      { name: "near", role: "prefill", labels: { zone: "z", rack: "r1", host: "h3" } },
      { name: "d0", role: "decode", labels: { zone: "z", rack: "r1", host: "h1" } },
    ]);
    makeBusy(fleet, "d0", 40);
    const { scheduler } = made(fleet, { policy: "kvasir" });
    assert.equal(where(submit(scheduler, 0, splittable(1, 500)).placement), "near>d0");
  });

  it("takes a pair where nobody serves alone, whatever the policy", () => {
    const engines = P_AND_D.map((engine) => ({ ...engine, kind: "sglang" as const }));
    const { scheduler } = made(pairFleet(engines), { policy: "round-robin" });
    const { placement } = submit(scheduler, 0, splittable(1, 2, { handoffs: ["bootstrap"] }));
    assert.equal(where(placement), "p0>d0");
    assert.equal(placement?.decision.replicaId, "d0");
    assert.equal(placement?.decision.runnerUp, null);
  });

  it("leaves to one replica what cannot be split, and says why", () => {
    const { scheduler } = busyDecode();
    const request = splittable(1, 500, { handoffs: [], unsplit: "sequences" });
    const { placement } = submit(scheduler, 0, request);
    assert.equal(where(placement), "d0");
    assert.equal(placement?.whole, "sequences");
  });

  it("refuses what cannot be split where nobody serves alone", () => {
    const engines = P_AND_D.map((engine) => ({ ...engine, kind: "sglang" as const }));
    const { scheduler } = made(pairFleet(engines));
    const { error } = submit(scheduler, 0, splittable(1, 2, { handoffs: [], unsplit: "sequences" }));
    assert.equal(error?.code, "no_replica_available");
  });

  it("does not pair engines that hand over in different ways", () => {
    const fleet = pairFleet([
      { name: "p0", role: "prefill", handoff: { protocol: "mooncake", engineId: "e" } },
      { name: "d0", role: "decode" },
    ]);
    makeBusy(fleet, "d0", 40);
    const { scheduler } = made(fleet, { policy: "kvasir" });
    const { placement } = submit(scheduler, 0, splittable(1, 500, { handoffs: ["nixl", "mooncake"] }));
    assert.equal(where(placement), "d0");
  });

  it("waits where no pair has room, and is bound when a prefill side answers", () => {
    const engines = [
      { name: "p0", role: "prefill", slots: 1, kind: "sglang" },
      { name: "d0", role: "decode", kind: "sglang" },
    ] as const;
    const { scheduler } = made(pairFleet(engines));
    const first = submit(scheduler, 0, splittable(1, 10, { handoffs: ["bootstrap"] }));
    const second = submit(scheduler, 0, splittable(2, 10, { handoffs: ["bootstrap"] }));
    assert.equal(second.results.length, 0);
    scheduler.prefilled(first.placement!, null, 50);
    assert.equal(where(second.placement), "p0>d0");
  });
});

describe("what a pair holds", () => {
  const ends: readonly (readonly [string, AttemptOutcome])[] = [
    ["answered", answered({ outputTokens: 5 })],
    ["failed", FAILED],
    ["failed on the prefill side", { ...FAILED, leg: "prefill" }],
    ["failed between the two", { ...FAILED, leg: "link" }],
    ["refused", { kind: "busy", status: 503, retryAfterMs: 100, leg: "prefill" }],
    ["given up", { kind: "client_gone" }],
    ["shut down", { kind: "shutdown" }],
  ];
  const steps = ["placed", "prefilled", "first token", "progress"] as const;

  for (const [name, outcome] of ends)
    for (const [at, step] of steps.entries())
      for (const streamed of [true, false])
        it(`is released once when ${name} after "${step}", ${streamed ? "streamed" : "in one piece"}`, () => {
          const { fleet, scheduler } = busyDecode();
          const before = ["p0", "d0"].map((id) => ownLoad(replicaOf(fleet, id)));
          const reserved = fleet.ledger.size;
          const placement = placed(scheduler, 500, streamed);
          assert.equal(fleet.ledger.size, reserved + 2);
          if (at >= 1) scheduler.prefilled(placement, { ...NOT_REPORTED, promptTokens: 8001, cachedTokens: 0 }, 100);
          if (at >= 2) scheduler.firstToken(placement, 150);
          if (at >= 3) scheduler.progress(placement, 4, 170);
          scheduler.finish(placement, outcome, 200);
          scheduler.finish(placement, outcome, 201);
          const keeps = step === "prefilled" && outcome.kind !== "answered";
          assert.equal(fleet.heldKv.size, keeps ? 1 : 0);
          assert.equal(replicaOf(fleet, "p0").load.reservedKvTokens, keeps ? 8001 : 0);
          assert.equal(replicaOf(fleet, "p0").load.requests, 0);
          fleet.tick(100 + LEASE_MS - 1);
          assert.equal(fleet.heldKv.size, keeps ? 1 : 0);
          fleet.tick(100 + LEASE_MS);
          assert.equal(fleet.heldKv.size, 0);
          assert.deepEqual(
            ["p0", "d0"].map((id) => ownLoad(replicaOf(fleet, id))),
            before,
          );
          assert.equal(fleet.ledger.size, reserved);
          assert.equal(fleet.index.pending, 0);
          const { out } = placement.prefill!.transfer.link;
          assert.deepEqual([out.promised, out.active, out.promisedBytes], [0, 0, 0]);
        });

  it("is nothing any more on a side that restarted", () => {
    const { fleet, scheduler } = busyDecode();
    const submitted = submit(scheduler, 0, splittable(1, 500));
    scheduler.prefilled(submitted.placement!, null, 100);
    fleet.restarted(replicaOf(fleet, "p0"), 110);
    assert.equal(submitted.lost, 1);
    scheduler.finish(submitted.placement!, { ...FAILED, leg: "prefill" }, 111);
    assert.deepEqual(new Set(ownLoad(replicaOf(fleet, "p0"))), new Set([0]));
  });

  it("is let go of by the prefill side with the first token", () => {
    const { fleet, scheduler } = busyDecode();
    const placement = placed(scheduler);
    scheduler.prefilled(placement, null, 100);
    assert.equal(replicaOf(fleet, "p0").load.reservedKvTokens, 8001);
    scheduler.firstToken(placement, 150);
    assert.equal(replicaOf(fleet, "p0").load.reservedKvTokens, 0);
  });

  it("is nothing where the ledger has no room for both legs", () => {
    const engines = P_AND_D.map((engine) => ({ ...engine, kind: "sglang" as const }));
    const fleet = pairFleet(engines);
    const bounded = made(fleet);
    const full = new RouterError("queue_full", "full", { fault: "router", httpStatus: 429, retryable: true });
    const reserve = fleet.ledger.reserve.bind(fleet.ledger);
    let calls = 0;
    fleet.ledger.reserve = (...given) => {
      if (++calls === 2) throw full;
      return reserve(...given);
    };
    const { error } = submit(bounded.scheduler, 0, splittable(1, 2, { handoffs: ["bootstrap"] }));
    assert.equal(error, full);
    assert.equal(fleet.ledger.size, 0);
    assert.deepEqual(new Set(ownLoad(replicaOf(fleet, "p0"))), new Set([0]));
  });
});

describe("what a pair teaches", () => {
  it("blames the side that failed", () => {
    for (const [leg, quarantined] of [
      ["prefill", "p0"],
      ["decode", "d0"],
    ] as const) {
      const { fleet, scheduler } = busyDecode();
      const states: string[] = [];
      for (let n = 0; n < 20 && states.length === 0; n++) {
        const { placement } = submit(scheduler, n, splittable(n, 500));
        if (!placement?.prefill) break;
        scheduler.finish(placement, { ...FAILED, leg }, n);
        for (const { id, lifecycle } of fleet.replicas()) if (lifecycle.state === "quarantined") states.push(id);
      }
      assert.deepEqual(states, [quarantined]);
    }
  });

  it("learns the link from hand-offs whose first token was seen", () => {
    const { scheduler } = busyDecode();
    const placement = placed(scheduler);
    const { link } = placement.prefill!.transfer;
    scheduler.prefilled(placement, null, 100);
    scheduler.firstToken(placement, 400);
    assert.equal(link.observations, 1);
  });

  it("compares what was cached by what the prefill side reports", () => {
    const { fleet, scheduler } = busyDecode();
    for (let n = 0; n < 40; n++) {
      const { placement } = submit(scheduler, n * 1000, splittable(n, 500));
      if (!placement?.prefill) continue;
      scheduler.prefilled(placement, { promptTokens: 8001, cachedTokens: 0, outputTokens: 1 }, n * 1000 + 100);
      scheduler.firstToken(placement, n * 1000 + 150);
      scheduler.finish(
        placement,
        answered({ promptTokens: 8001, cachedTokens: 8000, outputTokens: 3 }),
        n * 1000 + 200,
      );
    }
    assert.equal(replicaOf(fleet, "p0").cachePrediction.isOff, false);
    assert.equal(replicaOf(fleet, "d0").cachePrediction.agreement, null);
  });
});
