import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import type { KvEvent, KvEventBatch } from "#src/engines/events/kvEvent.ts";
import { EventStream } from "#src/engines/events/stream/eventStream.ts";
import { ByteBudget } from "#src/engines/events/stream/inbox.ts";
import { DEFAULT_STREAM_SETTINGS } from "#src/engines/events/stream/streamTools.ts";
import { Turns } from "#src/engines/events/stream/turns.ts";
import { heldBlocks } from "#src/fleet/blockIndex.ts";
import { kvEventsToFleet } from "#src/fleet/precise/kvEventsToFleet.ts";
import { FakeSockets } from "../../engines/events/fakeSockets.ts";
import { msgpack } from "../../engines/events/wireEvents.ts";
import { readyFleet } from "../samples.ts";
import { ModelEngine, ownHashes, type ModelPrompt } from "./modelEngine.ts";

const BLOCK_TOKENS = 4;
const MEDIUM = { gpu: "GPU", host: "CPU", disk: "STORAGE", remote: "FAR" };

function somePrompt(random: SeededRandom): ModelPrompt {
  const variant = random.below(10);
  return {
    tokens: Array.from({ length: (1 + random.below(10)) * 4 + random.below(4) }, (_, at) =>
      at % 8 === 0 ? random.below(2) : at,
    ),
    adapter: variant === 0 ? "a" : null,
    salt: variant === 1 ? "a" : null,
    keys: [],
  };
}

/** As vLLM writes it. */
function onWire(event: KvEvent): unknown {
  if (event.kind === "cleared") return { type: "AllBlocksCleared" };
  const block_hashes = [...event.engineHashes];
  if (event.kind === "removed")
    return { type: "BlockRemoved", block_hashes, medium: MEDIUM[event.tier ?? "gpu"], group_idx: 0 };
  if (event.kind === "moved") throw new Error("vLLM has no such event");
  return {
    type: "BlockStored",
    block_hashes,
    parent_block_hash: event.parent,
    token_ids: [...event.tokenIds],
    block_size: event.blockTokens,
    lora_id: event.loraName === null ? null : 1,
    medium: MEDIUM[event.tier],
    lora_name: event.loraName,
    extra_keys: event.salt === null ? null : block_hashes.map((_, at) => (at === 0 ? [event.salt] : null)),
    group_idx: 0,
    kv_cache_spec_kind: "full_attention",
  };
}

/** An engine, its event stream through everything that sockets and processes do, and the fleet's view of it. */
class Line {
  readonly #random: SeededRandom;
  readonly #replayBatches: number;
  readonly #engine: ModelEngine;
  readonly #sockets = new FakeSockets();
  readonly #clock = new ManualClock(1_000_000);
  readonly #timers = new ManualTimers(this.#clock);
  readonly #due: (() => void)[] = [];
  readonly #fleet;
  readonly #stream: EventStream;
  /** Sent to the subscriber and not yet there. */
  #sent: KvEventBatch[] = [];
  #connected = 0;
  /** Questions before this one were answered, or never will be. */
  #answered = 0;
  #answer: KvEventBatch[] | null = null;
  #publishedSeconds = 1;

  constructor(seed: number, replayBatches: number) {
    this.#random = new SeededRandom(seed);
    this.#replayBatches = replayBatches;
    this.#engine = new ModelEngine(
      {
        blockTokens: BLOCK_TOKENS,
        ownBlockTokens: BLOCK_TOKENS,
        gpuBlocks: 12 + this.#random.below(20),
        hostBlocks: this.#random.below(2) * 6,
        diskBlocks: 3,
        hashSeed: this.#random.below(2 ** 31),
        likeVllm: true,
      },
      this.#random,
    );
    const { fleet } = readyFleet(["e:1"], {}, { kvBlockTokens: BLOCK_TOKENS });
    this.#fleet = fleet;
    const { endpoint } = fleet.replicas()[0]!;
    const listener = kvEventsToFleet(fleet);
    const now = (): number => this.#clock.nowMs();
    this.#stream = new EventStream(
      0,
      { events: "tcp://e:1", replay: "tcp://e:2", topic: "", bind: false },
      {
        batch: (batch) => listener.batch(endpoint, 0, batch, now()),
        lost: (why) => listener.lost(endpoint, 0, why, now()),
        restarted: () => listener.restarted(endpoint, 0, now()),
        progress: (progress) => listener.progress(endpoint, 0, progress, now()),
        live: (history) => listener.live(endpoint, 0, history, now()),
        failed: (why) => listener.failed(endpoint, 0, why, now()),
      },
      {
        clock: this.#clock,
        timers: this.#timers,
        random: this.#random,
        turns: new Turns((run) => void this.#due.push(run)),
        budget: new ByteBudget(1 << 24),
        sockets: this.#sockets,
        settings: DEFAULT_STREAM_SETTINGS,
      },
    );
  }

  stop(): void {
    this.#stream.stop();
  }

  get state(): string {
    return this.#fleet.index.view(0).state.state;
  }

  async step(): Promise<void> {
    const dice = this.#random.below(40);
    if (dice === 0) this.#restart();
    else if (dice === 1) this.#disconnect();
    else if (dice === 2) this.#engine.clear();
    else if (dice === 3) this.#engine.evictAnywhere();
    else if (dice === 4) await this.#timers.advance(this.#random.below(12_000));
    else if (dice < 20) this.#engine.run(somePrompt(this.#random), this.#random.below(10) > 0);
    if (this.#random.below(2) === 0) this.#publish(this.#random.below(20) > 0);
    for (let moves = this.#random.below(4); moves > 0; moves--) this.#move();
    if (this.#random.below(3) > 0) this.#runTurns();
  }

  /** Everything goes well until nothing more happens. */
  async settle(): Promise<void> {
    this.#publish(true);
    // More than one silence after which the stream asks; and what was asked for later is asked for.
    for (let round = 0; round < 40; round++) {
      for (let moves = 0; moves < 300 && this.#move(true); moves++) this.#runTurns();
      this.#runTurns();
      await this.#timers.advance(11_000);
    }
  }

  check(): void {
    const out = heldBlocks(1);
    for (let probe = 0; probe < 30; probe++) {
      const prompt = somePrompt(this.#random);
      this.#fleet.index.match(ownHashes(prompt, this.#engine.options), [{ index: 0 }], out);
      assert.deepEqual(
        [out.gpu[0], out.host[0], out.disk[0]],
        [
          this.#engine.leading(prompt, "gpu"),
          this.#engine.leading(prompt, "gpu", "host"),
          this.#engine.leading(prompt, "gpu", "host", "disk"),
        ],
      );
    }
    assert.equal(this.#fleet.index.view(0).gpuTokens, this.#engine.gpuOwnBlocks * BLOCK_TOKENS);
  }

  #publish(arrives: boolean): void {
    const batch = this.#engine.publish();
    if (batch !== null && arrives && this.#connected === this.#sockets.subscriptions.length) this.#sent.push(batch);
  }

  /** One thing that the network does; false: there was nothing to do. */
  #move(well = false): boolean {
    const { subscription } = this.#sockets;
    const open = this.#sockets.subscriptions.length;
    if (this.#connected < open && !subscription.closed) {
      this.#connected = open;
      subscription.events.connected();
      return true;
    }
    if (this.#answer === null && this.#answered < this.#sockets.questions.length) return this.#takeQuestion(well);
    if (this.#answer !== null && (this.#sent.length === 0 || this.#random.below(2) === 0)) return this.#repeat(well);
    const batch = this.#sent.shift();
    if (batch === undefined) return false;
    if (!subscription.closed) this.#sockets.hear(batch.seq, this.#bytes(batch));
    return true;
  }

  #takeQuestion(well: boolean): boolean {
    const at = this.#answered++;
    const question = this.#sockets.questions[at]!;
    // Some are never answered.
    if (question.closed || at + 1 < this.#sockets.questions.length || (!well && this.#random.below(10) === 0))
      return true;
    this.#answer = this.#engine.log.slice(-this.#replayBatches).filter(({ seq }) => seq >= question.fromSeq);
    return true;
  }

  #repeat(well: boolean): boolean {
    const batch = this.#answer?.shift();
    const isOpen = !this.#sockets.question.closed && this.#answered === this.#sockets.questions.length;
    if (!isOpen) this.#answer = null;
    else if (batch === undefined) {
      this.#answer = null;
      this.#sockets.endReplay();
    } else if (well || this.#random.below(15) > 0) this.#sockets.repeat(batch.seq, this.#bytes(batch));
    return true;
  }

  #disconnect(): void {
    const { subscription } = this.#sockets;
    this.#sent = [];
    this.#answer = null;
    if (!subscription.closed && this.#connected === this.#sockets.subscriptions.length)
      subscription.events.disconnected("cut");
  }

  #restart(): void {
    this.#publish(true);
    // What the old process sent may still come, before and after others know that it is gone.
    while (this.#random.below(3) > 0 && this.#sent.length > 0) this.#move();
    const isNoticed = this.#random.below(2) === 0;
    this.#engine.restart();
    this.#publishedSeconds += 100;
    if (isNoticed) this.#fleet.endpointRestarted("e:1", this.#clock.nowMs());
    while (this.#random.below(3) > 0 && this.#sent.length > 0) this.#move();
    if (isNoticed) this.#stream.startOver();
    this.#disconnect();
  }

  #runTurns(): void {
    for (let turn = this.#due.shift(); turn !== undefined; turn = this.#due.shift()) turn();
  }

  #bytes({ seq, events }: KvEventBatch): Buffer {
    return msgpack([this.#publishedSeconds + seq / 1000, events.map(onWire), 0]);
  }
}

describe("engines, event streams and the index together", () => {
  for (const replayBatches of [Number.POSITIVE_INFINITY, 20, 3]) {
    it(`agree or say that they are not sure, with ${replayBatches} batches to repeat`, async () => {
      const isAllRepeated = replayBatches === Number.POSITIVE_INFINITY;
      const seeds = isAllRepeated ? 40 : 10;
      let live = 0;
      for (let seed = 1; seed <= seeds; seed++) {
        const line = new Line(seed, replayBatches);
        for (let round = 0; round < 6; round++) {
          for (let step = 0; step < 60; step++) await line.step();
          await line.settle();
          if (line.state === "live") {
            live++;
            line.check();
          }
        }
        line.stop();
      }
      // Whoever can be told everything again is sure in the end.
      if (isAllRepeated) assert.equal(live, 6 * seeds);
      else assert.ok(live >= seeds, `${live} of ${6 * seeds} times sure`);
    });
  }
});
