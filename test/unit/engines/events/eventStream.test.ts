import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#src/determinism/clock.ts";
import { SeededRandom } from "#src/determinism/random.ts";
import { ManualTimers } from "#src/determinism/timers.ts";
import { EventStream } from "#src/engines/events/stream/eventStream.ts";
import { readLiveMessage, readReplayMessage, type BatchFrame } from "#src/engines/events/stream/frames.ts";
import { ByteBudget, Inbox } from "#src/engines/events/stream/inbox.ts";
import { FULLER_ASKS } from "#src/engines/events/stream/steps.ts";
import { DEFAULT_STREAM_SETTINGS, type StreamSettings } from "#src/engines/events/stream/streamTools.ts";
import { Turns } from "#src/engines/events/stream/turns.ts";
import { FakeSockets } from "./fakeSockets.ts";
import { HeldBlocks } from "./heldBlocks.ts";
import { basicMessages, recordedReplay } from "./recordedFrames.ts";
import { batch, stored } from "./wireEvents.ts";

function setUp({ hasReplay = true, ...settings }: { hasReplay?: boolean } & Partial<StreamSettings> = {}) {
  const clock = new ManualClock();
  const timers = new ManualTimers(clock);
  const sockets = new FakeSockets();
  const view = new HeldBlocks();
  /** Turns of the loop that are due. */
  const due: (() => void)[] = [];
  const address = { events: "tcp://a:1", replay: hasReplay ? "tcp://a:2" : null, topic: "kv", bind: false };
  const stream = new EventStream(0, address, view, {
    clock,
    timers,
    random: new SeededRandom(1),
    turns: new Turns((run) => void due.push(run)),
    budget: new ByteBudget(1 << 20),
    sockets,
    settings: { ...DEFAULT_STREAM_SETTINGS, ...settings },
  });
  /** Runs turns until none is due; gives their number. */
  const runTurns = (): number => {
    let turns = 0;
    for (let turn = due.shift(); turn !== undefined; turn = due.shift()) {
      turns++;
      turn();
    }
    return turns;
  };
  return { clock, timers, sockets, view, stream, due, runTurns };
}

const one = (seq: number) => batch([stored([BigInt(seq)], null, [seq, seq], 2)], 1000 + seq);

describe("an event stream on moved time", () => {
  it("connects again with growing delays, spread at random", async () => {
    const { timers, sockets, view, clock, stream } = setUp();
    const openedMs: number[] = [];
    for (let seen = 0; clock.nowMs() < 120_000;) {
      if (sockets.subscriptions.length > seen) {
        seen++;
        openedMs.push(clock.nowMs());
        sockets.subscription.events.disconnected("refused");
      }
      await timers.advance(10);
    }
    const delaysMs = openedMs.slice(1).map((atMs, at) => atMs - (openedMs[at] ?? 0));
    for (const [at, delayMs] of delaysMs.entries()) {
      const fullMs = Math.min(10_000, 250 * 2 ** at);
      assert.ok(delayMs >= fullMs / 2 && delayMs <= fullMs + 10, `delay ${at} is ${delayMs} ms`);
    }
    assert.ok(delaysMs.length > 10);
    assert.ok(new Set(delaysMs.slice(-5)).size > 1, "not all alike");
    assert.ok(sockets.subscriptions.slice(0, -1).every(({ closed }) => closed));
    assert.deepEqual(view.story, ["failed"]);
    stream.stop();
    assert.equal(timers.pending, 0);
  });

  it("does not wait for a greeting for ever", async () => {
    const { timers, sockets, view, stream } = setUp();
    await timers.advance(DEFAULT_STREAM_SETTINGS.connectLimitMs - 1);
    assert.deepEqual(view.story, []);
    await timers.advance(2000);
    assert.deepEqual(view.story, ["failed"]);
    assert.equal(sockets.subscriptions.length, 2);
    stream.stop();
  });

  it("subscribes first, then asks from the start, and holds back what it hears meanwhile", () => {
    const { sockets, view, stream, runTurns } = setUp();
    assert.equal(sockets.questions.length, 0);
    sockets.subscription.events.connected();
    assert.equal(sockets.question.fromSeq, 0);
    sockets.hear(2, one(2));
    sockets.hear(3, one(3));
    runTurns();
    assert.deepEqual(view.seqs, []);
    for (const seq of [0, 1, 2]) sockets.repeat(seq, one(seq));
    sockets.endReplay();
    runTurns();
    assert.deepEqual(view.seqs, [0, 1, 2, 3]);
    assert.ok(sockets.question.closed);
    assert.deepEqual(view.story, ["asked", "progress", "live"]);
    stream.stop();
  });

  it("measures the silence of a replay and not its length", async () => {
    const { timers, sockets, view, stream, runTurns } = setUp();
    sockets.subscription.events.connected();
    for (let seq = 0; seq < 10; seq++) {
      await timers.advance(DEFAULT_STREAM_SETTINGS.answerLimitMs - 100);
      sockets.repeat(seq, one(seq));
      runTurns();
    }
    assert.equal(sockets.questions.length, 1);
    await timers.advance(DEFAULT_STREAM_SETTINGS.answerLimitMs + 1);
    assert.equal(sockets.questions.length, 2);
    assert.equal(sockets.question.fromSeq, 9, "with the last batch as proof that it is the same process");
    await timers.advance(2 * DEFAULT_STREAM_SETTINGS.answerLimitMs);
    assert.equal(view.count("failed"), 1);
    assert.deepEqual([view.seqs.length, view.history], [10, null], "kept, but more may have been published");
    const asked = sockets.questions.length;
    while (sockets.question.closed || sockets.questions.length === asked) await timers.advance(100);
    for (let seq = 0; seq < 11; seq++) sockets.repeat(seq, one(seq));
    sockets.endReplay();
    runTurns();
    assert.deepEqual(view.history, { sinceSeq: 0, complete: true });
    stream.stop();
  });

  it("asks whether there was something to hear when it was quiet", async () => {
    const { timers, sockets, view, stream, runTurns } = setUp();
    sockets.subscription.events.connected();
    sockets.repeat(0, one(0));
    sockets.endReplay();
    runTurns();
    await timers.advance(DEFAULT_STREAM_SETTINGS.checkAfterMs - 1);
    sockets.hear(1, one(1));
    runTurns();
    await timers.advance(DEFAULT_STREAM_SETTINGS.checkAfterMs - 1);
    assert.equal(sockets.questions.length, 1, "it was not quiet");
    await timers.advance(1);
    assert.equal(sockets.questions.length, 2);
    sockets.repeat(1, one(1));
    sockets.repeat(2, one(2));
    sockets.endReplay();
    runTurns();
    assert.deepEqual(view.seqs, [0, 1, 2]);
    stream.stop();
    assert.equal(timers.pending, 0);
  });

  it("asks for everything again where an answer lacked its beginning, and is sure then", async () => {
    const { timers, sockets, view, stream, runTurns } = setUp();
    const answer = (...seqs: number[]): void => {
      for (const seq of seqs) sockets.repeat(seq, one(seq));
      sockets.endReplay();
      runTurns();
    };
    sockets.subscription.events.connected();
    answer(2, 3);
    assert.deepEqual(view.history, { sinceSeq: 2, complete: false });
    await timers.advance(DEFAULT_STREAM_SETTINGS.rebuildFirstDelayMs);
    assert.equal(sockets.question.fromSeq, 0);
    answer(0, 1, 2, 3);
    assert.deepEqual(view.seqs, [0, 1, 2, 3]);
    assert.deepEqual(view.history, { sinceSeq: 0, complete: true });
    stream.stop();
  });

  it("asks for everything again after a gap that two answers did not close", async () => {
    const { timers, sockets, view, stream, runTurns } = setUp();
    sockets.subscription.events.connected();
    sockets.endReplay();
    for (const seq of [0, 3]) sockets.hear(seq, one(seq));
    runTurns();
    sockets.repeat(0, one(0));
    sockets.endReplay();
    runTurns();
    assert.deepEqual(view.history, { sinceSeq: 3, complete: false });
    await timers.advance(DEFAULT_STREAM_SETTINGS.rebuildFirstDelayMs);
    for (const seq of [0, 1, 2, 3]) sockets.repeat(seq, one(seq));
    sockets.endReplay();
    runTurns();
    assert.deepEqual(view.history, { sinceSeq: 0, complete: true });
    stream.stop();
  });

  it("asks ever more seldom and not for ever where the engine has no more, and keeps what is known", async () => {
    const { timers, clock, sockets, view, stream, runTurns } = setUp({ checkAfterMs: 1e9 });
    sockets.subscription.events.connected();
    const askedMs: number[] = [];
    let answered = 0;
    const end = clock.nowMs() + 3_600_000;
    while (clock.nowMs() < end) {
      if (sockets.questions.length > answered) {
        answered++;
        askedMs.push(clock.nowMs());
        // The window moves on while the history that is known does not.
        for (const seq of [4, 5, 6, 7].slice(Math.min(3, answered - 1))) sockets.repeat(seq, one(seq));
        sockets.endReplay();
        runTurns();
      }
      await timers.advance(500);
    }
    assert.equal(askedMs.length, 1 + FULLER_ASKS);
    const delaysMs = askedMs.slice(1).map((atMs, at) => atMs - askedMs[at]!);
    assert.ok(delaysMs.at(-1)! > 2 * delaysMs[0]!, delaysMs.join());
    assert.deepEqual(view.seqs, [4, 5, 6, 7]);
    assert.ok(view.story.every((event) => !event.startsWith("lost")));
    assert.deepEqual(view.history, { sinceSeq: 4, complete: false });
    stream.stop();
    assert.equal(timers.pending, 0);
  });

  it("tells a flood in slices, each in a turn of its own", () => {
    const { sockets, view, stream, runTurns } = setUp({ hasReplay: false });
    sockets.subscription.events.connected();
    for (let seq = 0; seq < 5000; seq++) sockets.hear(seq, one(seq));
    // A message, its batch and its block are three units of the 2,000 of a slice.
    assert.equal(runTurns(), 8);
    assert.equal(view.seqs.length, 5000);
    stream.stop();
  });

  it("asks at once for what it had no room for", () => {
    const { sockets, view, stream, runTurns } = setUp({ maxQueuedMessages: 2 });
    sockets.subscription.events.connected();
    for (const seq of [0, 1, 2]) sockets.hear(seq, one(seq));
    for (const seq of [0, 1]) sockets.repeat(seq, one(seq));
    sockets.endReplay();
    runTurns();
    assert.deepEqual(view.seqs, [0, 1]);
    assert.equal(sockets.questions.length, 2);
    assert.equal(sockets.question.fromSeq, 1);
    for (const seq of [1, 2]) sockets.repeat(seq, one(seq));
    sockets.endReplay();
    runTurns();
    assert.deepEqual(view.seqs, [0, 1, 2]);
    stream.stop();
  });

  it("takes nothing more from a connection that ended", () => {
    const { sockets, view, stream, runTurns } = setUp({ hasReplay: false });
    sockets.subscription.events.connected();
    sockets.hear(0, one(0));
    sockets.subscription.events.disconnected("gone");
    runTurns();
    assert.deepEqual(view.seqs, []);
    stream.stop();
  });

  it("says what it is doing", () => {
    const { sockets, stream, runTurns } = setUp();
    assert.equal(stream.status().phase, "connecting");
    sockets.subscription.events.connected();
    assert.equal(stream.status().phase, "replaying");
    sockets.endReplay();
    sockets.hear(0, one(0));
    sockets.subscription.events.message([Buffer.from("stray")]);
    runTurns();
    assert.deepEqual(stream.status(), {
      phase: "live",
      cursor: 0,
      batches: 1,
      events: 1,
      unreadableEvents: 0,
      strayMessages: 1,
      droppedMessages: 0,
      replays: 1,
      losses: 0,
      restarts: 0,
    });
    stream.stop();
    assert.equal(stream.status().phase, "stopped");
    assert.ok(sockets.subscription.closed);
  });
});

describe("turns", () => {
  it("run one slice at a time, in rotation", () => {
    const due: (() => void)[] = [];
    const turns = new Turns((run) => void due.push(run));
    const ran: string[] = [];
    const slice = (name: string, times: number) => () => {
      ran.push(name);
      return --times > 0;
    };
    const [a, b] = [slice("a", 3), slice("b", 2)];
    turns.ask(a);
    turns.ask(b);
    turns.ask(a);
    for (let turn = due.shift(); turn !== undefined; turn = due.shift()) {
      const before = ran.length;
      turn();
      assert.ok(ran.length <= before + 1);
    }
    assert.deepEqual(ran, ["a", "b", "a", "b", "a"]);
  });
});

describe("an inbox", () => {
  const frame = (seq: number, bytes = 10): BatchFrame => ({ seq, payload: Buffer.alloc(bytes) });

  it("drops what is too many or too large, and goes on", () => {
    const budget = new ByteBudget(100);
    const inbox = new Inbox<BatchFrame>(budget, 3);
    assert.deepEqual(
      [1, 2, 3, 4].map((seq) => inbox.push(frame(seq))),
      [true, true, true, false],
    );
    assert.equal(budget.leftBytes, 70);
    inbox.shift();
    assert.ok(!inbox.push(frame(5, 81)));
    assert.ok(inbox.push(frame(6, 80)));
    assert.equal(inbox.droppedMessages, 2);
    assert.equal(inbox.peek()?.seq, 2);
    inbox.clear();
    assert.equal(inbox.size, 0);
    assert.equal(budget.leftBytes, 100);
  });

  it("shares the bytes with the others", () => {
    const budget = new ByteBudget(100);
    const [a, b] = [new Inbox<BatchFrame>(budget, 10), new Inbox<BatchFrame>(budget, 10)];
    assert.ok(a.push(frame(1, 60)));
    assert.ok(!b.push(frame(1, 60)));
    a.shift();
    assert.ok(b.push(frame(1, 60)));
  });

  it("keeps the order over any pushes and shifts", () => {
    const random = new SeededRandom(7);
    const inbox = new Inbox<BatchFrame>(new ByteBudget(1 << 30), 1000);
    let pushed = 0;
    let shifted = 0;
    for (let step = 0; step < 20_000; step++) {
      if (random.next() < 0.5) {
        inbox.push(frame(pushed++));
      } else if (inbox.size > 0) {
        assert.equal(inbox.peek()?.seq, shifted++);
        inbox.shift();
      }
      assert.equal(inbox.size, pushed - shifted);
    }
  });

  it("has room for the end of a replay always, but once", () => {
    const inbox = new Inbox<BatchFrame | "end">(new ByteBudget(0), 0);
    assert.ok(inbox.push("end"));
    assert.ok(!inbox.push("end"));
    assert.equal(inbox.size, 1);
  });
});

describe("messages", () => {
  it("recorded from a real vLLM are batches with numbers that rise by one", () => {
    assert.deepEqual(
      basicMessages().map((frames) => readLiveMessage(frames)?.seq),
      [0, 1, 2, 3, 4, 5],
    );
    const replay = recordedReplay("gap-replay.json").map((frames) => readReplayMessage(frames, "kv"));
    assert.deepEqual(
      replay.map((message) => (message === "end" ? message : message?.seq)),
      [60, 61, 62, "end"],
    );
  });

  it("of a replay have three frames or four", () => {
    const seq = Buffer.of(0, 0, 0, 0, 0, 0, 1, 2);
    const [empty, payload, end] = [Buffer.of(), Buffer.of(0x90), Buffer.alloc(8, 0xff)];
    for (const frames of [
      [empty, seq, payload],
      [empty, Buffer.from("kv@a"), seq, payload],
    ]) {
      assert.deepEqual(readReplayMessage(frames, "kv"), { seq: 258, payload });
    }
    assert.equal(readReplayMessage([empty, end, empty], "kv"), "end");
    assert.equal(readReplayMessage([empty, empty, end, empty], "kv"), "end");
    assert.equal(readReplayMessage([empty, Buffer.from("load"), seq, payload], "kv"), null, "another topic");
  });

  it("of another form are none", () => {
    const seq = Buffer.alloc(8);
    for (const frames of [
      [],
      [seq],
      [seq, seq],
      [seq, Buffer.alloc(7), seq],
      [seq, Buffer.alloc(8, 0xff), seq],
      [seq, seq, seq, seq],
    ]) {
      assert.equal(readLiveMessage(frames), null);
    }
    assert.equal(readReplayMessage([seq, seq], ""), null);
  });
});
