import { SeededRandom } from "#src/determinism/random.ts";
import { EngineCore } from "#src/emulator/scheduler/engineCore.ts";
import type { Sequence } from "#src/emulator/scheduler/sequence.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { Health } from "#src/fleet/health.ts";
import { LatencyModel } from "#src/fleet/latencyModel.ts";
import { Ledger } from "#src/fleet/ledger.ts";
import type { PlacedPrefix } from "#src/fleet/prefixIndex.ts";
import { PrefixIndex } from "#src/fleet/prefixIndex.ts";
import { Replica } from "#src/fleet/replica.ts";
import type { Reservation } from "#src/fleet/reservation.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { createPolicy } from "#src/routing/createPolicy.ts";
import type { Policy } from "#src/routing/policy.ts";
import { COLUMN, TERMS } from "#src/routing/terms/term.ts";
import { H100 } from "./pool.ts";

const BLOCK_TOKENS = 16;
const SLOTS = 64;

interface Job {
  readonly replica: number;
  readonly request: RouteRequest;
  readonly sentMs: number;
  readonly cachedTokens: number;
  readonly queueMs: number;
  readonly alone: boolean;
  readonly reservation: Reservation;
  readonly placed: PlacedPrefix;
}

interface Step {
  readonly endMs: number;
  readonly durationMs: number;
  readonly decoding: number;
  readonly kvTokens: number;
  readonly pure: boolean;
  readonly emitted: readonly Sequence<Job>[];
  readonly finished: readonly Sequence<Job>[];
}

/** Modelled engines under virtual time, routed by a policy over the fleet's own ledger, index and latency models. */
export class ModelledFleet {
  readonly replicas: readonly Replica[];
  readonly engines: readonly EngineCore<Job>[];
  /** Requests sent to each replica. */
  readonly sent: number[];
  readonly ttftMs: number[] = [];
  cachedTokens = 0;
  nowMs = 0;
  readonly #policy: Policy;
  readonly #random = new SeededRandom(7);
  readonly #ledger = new Ledger();
  readonly #index = new PrefixIndex({ maxHolders: 2 ** 16 });
  readonly #steps: (Step | null)[];

  constructor(count: number, policy: string, options: { kvTokens?: number } = {}) {
    const kvTokens = options.kvTokens ?? 200_000;
    this.#policy = createPolicy(policy);
    this.replicas = Array.from({ length: count }, (_, index) => {
      const health = new Health(0);
      health.apply({ kind: "probe_ready" }, 0);
      const replica = new Replica({
        id: `gpu-${index}:8000`,
        index,
        incarnation: index + 1,
        endpoint: {
          url: `http://gpu-${index}:8000`,
          name: `gpu-${index}:8000`,
          engine: "vllm",
          role: "mixed",
          labels: {},
          apiKey: null,
          dataParallelRanks: null,
          prior: null,
        },
        rank: null,
        latency: new LatencyModel(H100, "prior"),
        health,
      });
      replica.profile = {
        kind: "vllm",
        version: null,
        dataParallelRanks: 1,
        models: [],
        maxRunningRequests: SLOTS,
        kvCapacityTokens: kvTokens,
        kvBlockTokens: BLOCK_TOKENS,
      };
      replica.refreshLimits();
      this.#index.setCapacity(index, kvTokens);
      return replica;
    });
    this.engines = this.replicas.map(
      () =>
        new EngineCore<Job>({
          times: H100,
          kvBlocks: kvTokens / BLOCK_TOKENS,
          blockTokens: BLOCK_TOKENS,
          maxRunning: SLOTS,
          maxBatchedTokens: 8192,
          policy: "fcfs",
          prefixCaching: true,
          maxResidentAdapters: 1,
          adapterLoadMs: 200,
        }),
    );
    this.sent = this.replicas.map(() => 0);
    this.#steps = this.replicas.map(() => null);
  }

  /** Sends a request now; returns the index of the replica that got it. */
  send(request: RouteRequest, outputTokens: number): number {
    const held = heldBlocks(this.replicas.length);
    this.#index.match(request.identity.hashes, this.replicas, held);
    const cachedTokens = Array.from(held.gpu, (blocks) => blocks * BLOCK_TOKENS);
    const { index, prices } = this.#policy.choose({
      request,
      candidates: this.replicas,
      cachedTokens,
      hostTokens: null,
      diskTokens: null,
      lineMs: null,
      heldTokens: this.replicas.map((replica) => this.#index.heldBy(replica.index) * BLOCK_TOKENS),
      expectedOutputTokens: outputTokens,
      nowMs: this.nowMs,
      random: this.#random,
      classTargets: null,
    });
    const replica = this.replicas[index]!;
    const alone = replica.load.sequences === 0;
    const job: Job = {
      replica: index,
      request,
      sentMs: this.nowMs,
      cachedTokens: cachedTokens[index]!,
      queueMs: prices === null ? 0 : prices.terms[index * TERMS.length + COLUMN.queue]!,
      alone,
      reservation: this.#ledger.reserve(request, replica, cachedTokens[index]!, outputTokens, this.nowMs),
      placed: this.#index.place(index, request.identity, this.nowMs),
    };
    this.engines[index]!.submit(
      {
        promptTokens: request.identity.promptTokens,
        outputTokens,
        hashes: request.identity.hashes,
        adapter: null,
        priority: 0,
        readsCache: true,
        owner: job,
      },
      this.nowMs,
    );
    this.sent[index]!++;
    this.#startStep(index);
    return index;
  }

  /** Lets time pass. */
  advance(byMs: number): void {
    const untilMs = this.nowMs + byMs;
    for (;;) {
      let next: number | null = null;
      for (const [at, step] of this.#steps.entries())
        if (step !== null && step.endMs <= untilMs && (next === null || step.endMs < this.#steps[next]!.endMs))
          next = at;
      if (next === null) break;
      this.nowMs = this.#steps[next]!.endMs;
      this.#endStep(next);
      this.#startStep(next);
    }
    this.nowMs = untilMs;
  }

  #startStep(at: number): void {
    const engine = this.engines[at]!;
    if (this.#steps[at] !== null || !engine.hasWork) return;
    const load = this.replicas[at]!.load.at(this.nowMs);
    const outcome = engine.step(this.nowMs);
    this.#steps[at] = {
      endMs: this.nowMs + outcome.durationMs,
      durationMs: outcome.durationMs,
      decoding: load.decodingSequences,
      kvTokens: load.decodeKvTokens,
      pure: load.waitingSequences === 0 && load.decodingSequences > 0,
      emitted: [...outcome.emitted],
      finished: [...outcome.finished],
    };
  }

  #endStep(at: number): void {
    const step = this.#steps[at]!;
    const { latency } = this.replicas[at]!;
    this.#steps[at] = null;
    if (step.pure) latency.observeStep(step.decoding, step.kvTokens, step.durationMs);
    for (const { owner, generatedTokens, cachedTokens } of step.emitted) {
      this.#ledger.progress(owner.reservation, generatedTokens, this.nowMs);
      if (generatedTokens !== 1) continue;
      const elapsedMs = this.nowMs - owner.sentMs;
      this.ttftMs.push(elapsedMs);
      this.cachedTokens += cachedTokens;
      this.#index.confirm(owner.placed, this.nowMs);
      const newTokens = owner.request.identity.promptTokens - owner.cachedTokens;
      if (owner.alone) latency.observePrefill(newTokens, owner.cachedTokens, elapsedMs, owner.queueMs);
    }
    for (const { owner } of step.finished) this.#ledger.release(owner.reservation, this.nowMs);
  }
}
