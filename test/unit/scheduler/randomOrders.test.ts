import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ClassTable } from "#src/scheduler/classes.ts";
import type { AttemptOutcome } from "#src/scheduler/outcome.ts";
import { FAILED, MODEL, answered, endpoint, made, ownLoad, prefixed, profile, readyFleet, submit } from "./harness.ts";
import type { Submitted } from "./harness.ts";

const LIMITS = { maxRequests: 6, maxBytes: 900, maxWaitMs: 2_000 };
const HURRIED = { ...new ClassTable().get("interactive"), name: "hurried", ttftTargetMs: 50, shedLate: true };
const NAMES = ["r0", "r1", "r2"];

const outcome: fc.Arbitrary<AttemptOutcome> = fc.oneof(
  fc.constant(answered({ promptTokens: 70, cachedTokens: 16, outputTokens: 20 })),
  fc.constant(answered({}, 422)),
  fc.record({ kind: fc.constant("busy" as const), status: fc.constant(503), retryAfterMs: fc.option(fc.nat(500)) }),
  fc.constant(FAILED),
  fc.constant({ kind: "client_gone" as const }),
);

const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("submit" as const),
      className: fc.constantFrom("batch", "standard", "interactive", "hurried"),
      tenant: fc.constantFrom("a", "a", "b", "c"),
      patienceMs: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 300, 5),
      sequences: fc.integer({ min: 1, max: 3 }),
      seed: fc.nat(3),
      bodyBytes: fc.nat(400),
      adapter: fc.constantFrom(null, null, "poet", "nobody's"),
      streamed: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("finish" as const), which: fc.nat(), outcome }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("token" as const), which: fc.nat(), tokens: fc.nat(300) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cancel" as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("retry" as const), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(800) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("members" as const), names: fc.subarray(NAMES) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("drain" as const), which: fc.nat() }) },
);

test("whatever happens in whatever order: nothing lost, nothing twice, bounds hold, zero at the end", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 120 }), fc.constantFrom("kvasir", "round-robin"), (events, policy) => {
      const fleet = readyFleet(3, 3);
      const { scheduler } = made(fleet, { limits: LIMITS, policy, classes: [HURRIED] });
      const all: Submitted[] = [];
      const cancelled = new Set<Submitted>();
      let nowMs = 0;
      const bound = () => all.filter((one) => one.placement !== null && !one.placement.finished);
      const join = (name: string): void => {
        fleet.applyProfile(name, profile(3, [MODEL], ["poet"]), nowMs);
        fleet.applyHealth(name, "ready", nowMs);
      };
      for (const name of NAMES) join(name);

      for (const happened of events) {
        switch (happened.kind) {
          case "submit": {
            const { className, tenant, patienceMs, sequences, seed, bodyBytes, adapter, streamed } = happened;
            const who = { className, tenant, arrivedMs: nowMs, deadlineMs: nowMs + patienceMs };
            const wanted = prefixed(seed, 4, { ...who, sequences, bodyBytes, adapter });
            all.push(submit(scheduler, nowMs, wanted, { streamed }));
            break;
          }
          case "finish": {
            const running = bound();
            if (running.length > 0)
              scheduler.finish(running[happened.which % running.length]!.placement!, happened.outcome, nowMs);
            break;
          }
          case "token": {
            const running = bound();
            if (running.length > 0)
              scheduler.progress(running[happened.which % running.length]!.placement!, happened.tokens, nowMs);
            break;
          }
          case "cancel": {
            if (all.length === 0) break;
            const one = all[happened.which % all.length]!;
            if (one.results.length === 0) cancelled.add(one);
            scheduler.cancel(one.ticket, nowMs);
            break;
          }
          case "retry": {
            const ended = all.filter((one) => one.placement?.finished);
            if (ended.length === 0) break;
            const { request, placement } = ended[happened.which % ended.length]!;
            all.push(submit(scheduler, nowMs, request, { attempt: 2, excluded: new Set([placement!.replica.id]) }));
            break;
          }
          case "pass": {
            const untilMs = nowMs + happened.ms;
            for (
              let wakeMs = scheduler.nextWakeMs();
              wakeMs !== null && wakeMs <= untilMs;
              wakeMs = scheduler.nextWakeMs()
            ) {
              nowMs = Math.max(nowMs, wakeMs);
              scheduler.tick(nowMs);
            }
            nowMs = untilMs;
            break;
          }
          case "restart": {
            const replicas = fleet.replicas();
            if (replicas.length > 0) fleet.restarted(replicas[happened.which % replicas.length]!, nowMs);
            for (const { id } of replicas) fleet.applyHealth(id, "ready", nowMs);
            break;
          }
          case "members": {
            fleet.applyEndpoints("list", happened.names.map(endpoint), nowMs);
            for (const name of happened.names) join(name);
            break;
          }
          case "drain": {
            const replicas = fleet.replicas();
            if (replicas.length > 0) fleet.drain(replicas[happened.which % replicas.length]!.id, nowMs);
            break;
          }
        }
        const { requests, bytes } = scheduler.depth;
        assert.ok(requests <= LIMITS.maxRequests && bytes <= LIMITS.maxBytes, "a bound of the queue was broken");
        const waiting = all.filter((one) => one.results.length === 0 && !cancelled.has(one));
        assert.equal(requests, waiting.length, "each request is settled or waits");
        assert.equal(
          bytes,
          waiting.reduce((sum, one) => sum + one.request.bodyBytes, 0),
        );
        assert.equal(scheduler.inFlight, bound().length);
        assert.equal(fleet.ledger.size, bound().length);
        for (const replica of fleet.replicas())
          assert.ok(
            ownLoad(replica).every((count) => count >= 0),
            "a counter went negative",
          );
      }

      // Everything that runs ends, and time passes until nobody waits any more.
      for (let rounds = 0; rounds < 200 && (bound().length > 0 || scheduler.depth.requests > 0); rounds++) {
        for (const one of bound()) scheduler.finish(one.placement!, answered(), nowMs);
        nowMs = Math.max(nowMs, scheduler.nextWakeMs() ?? nowMs);
        scheduler.tick(nowMs);
      }
      for (const one of all) assert.equal(one.results.length, cancelled.has(one) ? 0 : 1, "settled exactly once");
      assert.deepEqual(scheduler.depth, { requests: 0, bytes: 0 });
      assert.equal(scheduler.nextWakeMs(), null);
      assert.equal(fleet.ledger.size, 0);
      for (const replica of fleet.replicas())
        assert.deepEqual(
          ownLoad(replica),
          ownLoad(replica).map(() => 0),
        );
    }),
    { numRuns: 200 },
  );
});
