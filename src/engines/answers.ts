import { RouterError } from "../errors/routerError.ts";
import type { AskEngine, EngineAnswer } from "./engineAdapter.ts";

/** The JSON under a path, or undefined if the engine has no such route or answers something else. */
export async function askForJson(ask: AskEngine, path: string): Promise<unknown> {
  const answer = await ask(path);
  return answer.status === 200 ? parseJson(answer.body) : undefined;
}

/** The text under a path, or null if the engine has no such route. */
export async function askForText(ask: AskEngine, path: string): Promise<string | null> {
  const answer = await ask(path);
  return answer.status === 200 ? answer.body : null;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** For an answer that an identified engine should have given and did not. */
export function engineFailed(message: string): RouterError {
  return new RouterError("engine_failed", message, { fault: "engine", httpStatus: 502, retryable: true });
}

/** Health of the engines whose health route says 200 or an error and nothing more. */
export function healthByStatus(answer: EngineAnswer): "ready" | "unready" {
  return answer.status === 200 ? "ready" : "unready";
}
