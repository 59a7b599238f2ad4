import type { Timers } from "../determinism/timers.ts";
import { RouterError } from "../errors/routerError.ts";
import type { AskEngine } from "./engineAdapter.ts";

/** Gives each question a time limit, after which it is aborted and counts as unanswered. */
export function limitAsk(ask: AskEngine, timers: Timers, limitMs: number): AskEngine {
  return (path, options) =>
    new Promise((resolve, reject) => {
      const abort = new AbortController();
      const cancel = timers.after(limitMs, () => {
        reject(stalled(path, limitMs));
        abort.abort();
      });
      ask(path, { ...options, signal: abort.signal })
        .then(resolve, reject)
        .finally(cancel);
    });
}

function stalled(path: string, limitMs: number): RouterError {
  return new RouterError("engine_stalled", `The engine did not answer ${path} within ${limitMs} ms.`, {
    fault: "engine",
    httpStatus: 504,
    retryable: true,
  });
}
