import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { FIRST_STATE } from "#src/engines/events/stream/streamState.ts";
import { transition } from "#src/engines/events/stream/transition.ts";
import { ACTIONS, StreamModel, type Action } from "./streamModel.ts";

function play(model: StreamModel, ...actions: Action[]): void {
  for (const action of actions) model.act(action);
}

const replaying = (windowBatches = 100) => new StreamModel({ canReplay: true, windowBatches });
const seqs = ({ told }: StreamModel) => told.map(({ seq }) => seq);

describe("the life of an event stream", () => {
  it("tells what was published before it came, then what comes", () => {
    const model = replaying();
    play(model, "publish", "publish", "publish");
    model.settle();
    assert.ok(model.isLive);
    play(model, "publish");
    model.settle();
    assert.deepEqual(seqs(model), [0, 1, 2, 3]);
    assert.equal(model.losses, 0);
  });

  it("tells each batch once that comes both live and in the replay", () => {
    const model = replaying();
    play(model, "publish", "connect", "publish", "publish", "greet", "publish");
    model.settle();
    assert.deepEqual(seqs(model), [0, 1, 2, 3]);
    assert.equal(model.losses, 0);
  });

  it("closes a gap by replay", () => {
    const model = replaying();
    model.settle();
    play(model, "publish", "publishUnsent", "publishUnsent", "publish");
    model.settle();
    assert.deepEqual(seqs(model), [0, 1, 2, 3]);
    assert.equal(model.losses, 0);
  });

  it("gives up the view where the replay cannot close the gap, and begins a new one", () => {
    const model = replaying(2);
    model.settle();
    play(model, "publish", "publishUnsent", "publishUnsent", "publishUnsent", "publish");
    model.settle();
    assert.deepEqual(seqs(model), [3, 4]);
    assert.equal(model.losses, 1);
    assert.ok(model.isLive);
  });

  it("asks once more for what was missing in an answer", () => {
    const model = replaying();
    play(model, "publish", "publish", "publish", "connect", "greet", "repeat", "repeatDropped", "repeat");
    assert.deepEqual(seqs(model), [0]);
    model.settle();
    assert.deepEqual(seqs(model), [0, 1, 2]);
    assert.equal(model.losses, 0);
  });

  it("passes over a number that the engine never published", () => {
    const model = replaying();
    play(model, "publish", "skipNumber", "publish");
    model.settle();
    assert.deepEqual(seqs(model), [2]);
    assert.equal(model.losses, 1);
    play(model, "skipNumber", "publish");
    model.settle();
    assert.deepEqual(seqs(model), [4]);
    assert.equal(model.losses, 2);
  });

  it("keeps the view over an interruption of the same process", () => {
    const model = replaying();
    play(model, "publish");
    model.settle();
    play(model, "disconnect");
    assert.ok(!model.isLive);
    play(model, "publishUnsent");
    model.settle();
    assert.deepEqual(seqs(model), [0, 1]);
    assert.equal(model.losses, 0);
    assert.ok(model.isLive);
  });

  it("drops the view of a process that is gone, also if the next has published more already", () => {
    for (const published of [0, 1, 2, 3, 7]) {
      const model = replaying();
      play(model, "publish", "publish");
      model.settle();
      play(model, "restart", ...Array.from({ length: published }, () => "publish" as const));
      model.settle();
      assert.equal(model.losses, 1, `${published}`);
      assert.equal(model.told.length, published);
      assert.ok(model.told.every(({ process }) => process === 1));
      assert.ok(model.isLive);
    }
  });

  it("finds in a silence what it did not hear", () => {
    const model = replaying();
    model.settle();
    play(model, "publish", "publishUnsent");
    model.settle();
    assert.deepEqual(seqs(model), [0]);
    play(model, "check");
    model.settle();
    assert.deepEqual(seqs(model), [0, 1]);
  });

  it("goes on without history where nobody answers, and asks for it later", () => {
    const model = replaying();
    play(model, "publish", "publish", "connect", "greet", "repeatFail", "repeatFail");
    assert.equal(model.state.phase, "live");
    play(model, "publish");
    model.settle();
    assert.deepEqual(seqs(model), [2]);
    play(model, "rebuild");
    assert.deepEqual(seqs(model), [2], "kept until the answer begins");
    model.settle();
    assert.deepEqual(seqs(model), [0, 1, 2]);
  });

  it("is not up to date where an answer broke off, until a batch or another answer shows that nothing is missing", () => {
    for (const later of [["publish", "hear"], ["check"], ["rebuild"]] as const) {
      const model = replaying();
      play(model, "publish", "publish", "connect", "greet", "repeat", "repeat", "repeatFail", "repeatFail");
      assert.deepEqual([seqs(model), model.isLive], [[0, 1], false], later.join());
      play(model, ...later);
      model.settle();
      assert.ok(model.isLive, later.join());
      assert.equal(model.losses, 0);
    }
    const model = replaying();
    play(model, "publish", "publish", "connect", "greet", "repeat", "repeatFail", "repeatFail", "publish", "hear");
    assert.ok(!model.isLive, "a batch between is missing");
    model.settle();
    assert.deepEqual([seqs(model), model.isLive], [[0, 1, 2], true]);
  });

  it("loses the view where a gap is not answered", () => {
    const model = replaying();
    model.settle();
    play(model, "publish", "publishUnsent", "publish", "hear", "hear", "repeatFail", "repeatFail");
    assert.equal(model.losses, 1);
    model.settle();
    assert.deepEqual(seqs(model), [2]);
  });

  it("gives up on a gap for which the answer brings nothing", () => {
    const model = replaying();
    model.settle();
    play(model, "publish", "publishUnsent", "publish", "hear", "hear");
    play(model, "repeat", "repeatDropped", "repeatDropped", "repeatEnd");
    model.settle();
    assert.deepEqual(seqs(model), [2]);
    assert.equal(model.losses, 1);
    assert.ok(model.isLive);
  });

  it("asks for the history that it could not have before when it is connected anew", () => {
    const model = replaying();
    play(model, "publish", "connect", "greet", "repeatFail", "repeatFail", "publish");
    model.settle();
    assert.deepEqual(seqs(model), [1]);
    play(model, "disconnect");
    model.settle();
    assert.deepEqual(seqs(model), [0, 1]);
  });

  it("begins anew after a gap where the engine has no replay", () => {
    const model = new StreamModel({ canReplay: false, windowBatches: 10 });
    model.settle();
    play(model, "publish", "publishUnsent", "publish");
    model.settle();
    assert.deepEqual(seqs(model), [2]);
    assert.equal(model.losses, 1);
    play(model, "disconnect");
    model.settle();
    assert.ok(!model.isLive, "nothing shows yet that nothing was missed");
    play(model, "publish");
    model.settle();
    assert.deepEqual(seqs(model), [2, 3]);
    assert.ok(model.isLive);
    play(model, "restart");
    model.settle();
    play(model, "publish");
    model.settle();
    assert.deepEqual(seqs(model), [0]);
    assert.equal(model.losses, 2);
  });

  it("starts over on a new connection when it is told that the process is another one", () => {
    const model = replaying();
    play(model, "publish");
    model.settle();
    play(model, "startOver");
    assert.deepEqual([seqs(model), model.isLive, model.state.phase], [[], false, "connecting"]);
    model.settle();
    assert.deepEqual(seqs(model), [0]);
    assert.ok(model.isLive);
  });

  it("does nothing more once stopped", () => {
    const { state } = transition(FIRST_STATE, { kind: "stop" }, { canReplay: true });
    assert.deepEqual(transition(state, { kind: "connect" }, { canReplay: true }), { state, effects: [] });
  });

  for (const canReplay of [true, false]) {
    it(`never tells a broken history, and ends at the truth, ${canReplay ? "with" : "without"} replay`, () => {
      fc.assert(
        fc.property(
          fc.array(fc.constantFrom(...ACTIONS), { maxLength: 150, size: "max" }),
          fc.integer({ min: 1, max: 12 }),
          (actions, windowBatches) => {
            const model = new StreamModel({ canReplay, windowBatches });
            play(model, ...actions);
            model.settle();
            play(model, "publish");
            model.settle();
            if (canReplay) play(model, "check");
            model.settle();
            assert.ok(model.isLive);
            assert.deepEqual(model.told.at(-1), model.lastPublished);
          },
        ),
        { numRuns: 1500 },
      );
    });
  }
});
