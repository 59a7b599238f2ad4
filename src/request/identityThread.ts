import { parentPort } from "node:worker_threads";
import { toRouterError } from "#src/errors/routerError.ts";
import { identify } from "./identify.ts";
import type { ThreadAnswer, ThreadTask } from "./identityTask.ts";
import { NO_PROMPT } from "./prompt.ts";
import { readRequest } from "./readRequest.ts";

/*
 * The worker thread behind IdentityWorkers. It keeps nothing between tasks: to identify a prompt it reads the body
 * again, which is cheaper than to carry the plan of a large prompt across threads twice.
 */

if (parentPort === null) throw new Error("identityThread.ts runs as a worker thread");
const port = parentPort;

port.on("message", (task: ThreadTask) => {
  const answer = answerTo(task);
  port.postMessage(answer, answer.kind === "identity" ? [answer.identity.hashes.buffer as ArrayBuffer] : []);
});

function answerTo({ head, bytes, options }: ThreadTask): ThreadAnswer {
  try {
    const body = Buffer.from(bytes);
    const shape = readRequest(head.method, head.target, head.contentType, body, head.limits);
    if (options === null) return { kind: "shape", shape: { ...shape, prompt: NO_PROMPT } };
    const identity = identify(shape, body, options);
    // A transferred buffer must be the answer's own, and the shared empty one is not.
    return { kind: "identity", identity: { ...identity, hashes: identity.hashes.slice() } };
  } catch (caught) {
    const { code, message, fault, httpStatus, retryable, param } = toRouterError(caught);
    return { kind: "refused", code, message, options: { fault, httpStatus, retryable, ...(param && { param }) } };
  }
}
