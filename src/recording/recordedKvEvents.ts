import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { KvEventListener } from "#src/engines/events/kvEventListener.ts";
import type { Recorder } from "./write/recorder.ts";

/**
 * A listener that writes down what it passes on. A batch has token ids, which are the prompt: they are not written down,
 * but the hashes that `listener` makes of them, which is why a batch is written down only after it was passed on.
 */
export function recordedKvEvents(listener: KvEventListener, recorder: Recorder): KvEventListener {
  const recorded = (record: () => void, run: () => void): void => {
    if (!recorder.enter()) {
      run();
      return;
    }
    try {
      record();
      run();
    } finally {
      recorder.leave();
    }
  };
  return {
    batch(endpoint, rank, batch, nowMs) {
      if (!recorder.enter()) {
        listener.batch(endpoint, rank, batch, nowMs);
        return;
      }
      const watched = withOwnHashes(batch);
      try {
        listener.batch(endpoint, rank, watched, nowMs);
      } finally {
        recorder.kvBatch(endpoint.name, rank, watched, nowMs);
        recorder.leave();
      }
    },
    lost: (endpoint, rank, why, nowMs) =>
      recorded(
        () => recorder.kvLost(endpoint.name, rank, why, nowMs),
        () => listener.lost(endpoint, rank, why, nowMs),
      ),
    restarted: (endpoint, rank, nowMs) =>
      recorded(
        () => recorder.kvRestarted(endpoint.name, rank, nowMs),
        () => listener.restarted(endpoint, rank, nowMs),
      ),
    progress: (endpoint, rank, progress, nowMs) => listener.progress(endpoint, rank, progress, nowMs),
    live: (endpoint, rank, history, nowMs) =>
      recorded(
        () => recorder.kvLive(endpoint.name, rank, history.complete, nowMs),
        () => listener.live(endpoint, rank, history, nowMs),
      ),
    failed: (endpoint, rank, why, nowMs) =>
      recorded(
        () => recorder.kvFailed(endpoint.name, rank, why, nowMs),
        () => listener.failed(endpoint, rank, why, nowMs),
      ),
  };
}

function withOwnHashes(batch: KvEventBatch): KvEventBatch {
  const events = batch.events.map((event) => (event.kind === "stored" ? { ...event, own: { hashes: null } } : event));
  return { ...batch, events };
}
