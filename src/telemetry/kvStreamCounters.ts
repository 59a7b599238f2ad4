import { Counter, type Registry } from "prom-client";
import type { KvStreamSnapshot, TelemetrySources } from "./snapshots.ts";

const COUNTERS: readonly {
  readonly name: string;
  readonly help: string;
  readonly read: (stream: KvStreamSnapshot) => number;
}[] = [
  { name: "batches", help: "Batches of KV events received.", read: ({ batches }) => batches },
  { name: "received", help: "KV events received.", read: ({ events }) => events },
  { name: "unreadable", help: "KV events that could not be read.", read: ({ unreadableEvents }) => unreadableEvents },
  {
    name: "dropped_messages",
    help: "Messages of KV events for which there was no room.",
    read: ({ droppedMessages }) => droppedMessages,
  },
  { name: "replays", help: "Times that KV events were asked for again.", read: ({ replays }) => replays },
  {
    name: "losses",
    help: "Times that what KV events had told became void, because some of them were lost.",
    read: ({ losses }) => losses,
  },
  { name: "restarts", help: "Times that KV events showed a new engine process.", read: ({ restarts }) => restarts },
];

/** Counters of the event streams, read off them at every scrape: a stream that is gone has no series. */
export function addKvStreamCounters(registry: Registry, sources: TelemetrySources): void {
  for (const { name, help, read } of COUNTERS) {
    const counter = new Counter({
      name: `kvasir_kv_events_${name}_total`,
      help,
      labelNames: ["replica"],
      registers: [registry],
      collect() {
        this.reset();
        for (const stream of sources.kvStreams()) this.inc({ replica: stream.replica }, read(stream));
      },
    });
    void counter;
  }
}
