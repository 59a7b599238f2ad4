import type { FindingKind } from "./finding.ts";

const VLLM_EVENTS = `--kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}'`;
const SGLANG_EVENTS = `--kv-events-config '{"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}'`;

/** What can be wrong with an engine's KV events. */
export const EVENT_FINDINGS = {
  kv_events_off: {
    severity: "warn",
    effect:
      "What the engine holds is guessed from the router's own traffic: evictions, other routers and restarts are not seen.",
    mend: {
      vllm: `${VLLM_EVENTS}, and engines[].kvEvents unless the engine runs with VLLM_SERVER_DEV_MODE=1`,
      sglang: SGLANG_EVENTS,
      trtllm: `kv_cache_config: {event_buffer_max_size: 16384}, and engines[].kvEvents: {endpoint: pull}`,
    },
  },
  kv_events_none: {
    severity: "info",
    effect: "What the engine holds is guessed from the router's own traffic.",
    mend: "Nothing: this engine publishes none.",
  },
  kv_events_unreachable: {
    severity: "error",
    effect: "Its events are lost. What it holds is guessed from the router's own traffic.",
    mend: "Open the port between router and engine (each data-parallel rank has the next one), or correct engines[].kvEvents.endpoint.",
  },
  kv_events_silent: {
    severity: "error",
    effect: "The router believes in an empty cache where there is a full one.",
    mend: {
      vllm: "Make engines[].kvEvents.topic a beginning of the topic in --kv-events-config (empty: all), and enable_kv_cache_events true.",
      sglang: "Make engines[].kvEvents.topic a beginning of the topic in --kv-events-config (empty: all).",
      trtllm: "Make engines[].kvEvents.topic a beginning of the topic in kv_events_config (empty: all).",
    },
  },
  kv_events_unreadable: {
    severity: "error",
    effect: "Blocks of this engine are unknown.",
    mend: "A newer Kvasir, if the engine is newer than it; else see which engine publishes at that address.",
  },
  kv_replay_missing: {
    severity: "warn",
    effect:
      "After a start or a gap the router knows the cache only from then on, until old blocks have been stored again.",
    mend: {
      vllm: `"replay_endpoint":"tcp://*:5657" in --kv-events-config`,
      sglang: `"replay_endpoint":"tcp://*:5657" in --kv-events-config`,
      trtllm: "replay_endpoint in kv_cache_config.kv_events_config",
    },
  },
  kv_replay_silent: {
    severity: "error",
    effect: "As without a replay, and each attempt costs its time limit first.",
    mend: {
      vllm: "Open the port of replay_endpoint (each data-parallel rank has the next one), or correct engines[].kvEvents.replayEndpoint.",
      sglang:
        "Open the port of replay_endpoint (each data-parallel rank has the next one), or correct engines[].kvEvents.replayEndpoint.",
      trtllm: "Open the port of replay_endpoint, or correct engines[].kvEvents.replayEndpoint.",
    },
  },
} as const satisfies Record<string, FindingKind>;
