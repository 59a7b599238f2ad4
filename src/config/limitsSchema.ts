import { z } from "zod";
import { integer, MAX_MS } from "./schemaParts.ts";

export const limitsSchema = z
  .strictObject({
    connectMs: integer(1, 600_000).default(5_000).describe("Until a connection to an engine stands."),
    firstTokenMs: integer(1, MAX_MS)
      .default(600_000)
      .describe("From sending a request to an engine until the first byte of its answer: its queue and the prefill."),
    idleMs: integer(1, MAX_MS).default(120_000).describe("Longest pause between two bytes of an answer."),
    totalMs: integer(1, MAX_MS).default(3_600_000).describe("A whole request, waiting and retries included."),
    receiveMs: integer(1, MAX_MS).default(60_000).describe("Until a client has sent its whole request."),
    bodyBytes: integer(1, 4_294_967_295).default(67_108_864).describe("Largest request body."),
    headerBytes: integer(1_024, 1_048_576).default(32_768).describe("All headers of a request together."),
    connections: integer(1, 1_000_000).default(16_384).describe("Client connections at a time."),
    bufferedBytes: integer(1, 1_099_511_627_776)
      .default(1_073_741_824)
      .describe("Request bodies held at a time, waiting or being carried."),
    queueRequests: integer(0, 1_000_000)
      .default(2_000)
      .describe("Requests that may wait in the router when all batch slots are taken. 0: nobody waits."),
    queueBytes: integer(0, 1_099_511_627_776).default(268_435_456).describe("Bodies of waiting requests together."),
    queueMs: integer(1, MAX_MS).default(30_000).describe("Longest wait in the router."),
    retries: integer(0, 16).default(2).describe("Further attempts on other replicas before the first byte."),
    warmStartMs: integer(0, MAX_MS)
      .default(15_000)
      .describe(
        "After a start: how long the router says that it is not ready while it learns from KV events what engines hold.",
      ),
    drainDelayMs: integer(0, MAX_MS)
      .default(0)
      .describe(
        "After SIGTERM: how long the router says that it is not ready and still takes requests, so that balancers notice.",
      ),
    drainGraceMs: integer(0, MAX_MS)
      .default(30_000)
      .describe("After that: how long running answers may take to finish."),
  })
  .prefault({})
  .describe("Every bound in time and size. A client gets an error whose code names the limit that was hit.");
