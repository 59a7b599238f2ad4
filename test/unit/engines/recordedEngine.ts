import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AskEngine, EngineAnswer } from "#src/engines/engineAdapter.ts";
import { RouterError } from "#src/errors/routerError.ts";

interface RecordedAnswer {
  readonly label: string;
  readonly path: string;
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

const ROOT = join(import.meta.dirname, "../../recorded");

export function recordedText(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

export interface RecordedEngine {
  readonly ask: AskEngine;
  /** Paths asked so far. */
  readonly asked: string[];
  /** Answers another thing under a path from now on; null: the route is not there. */
  set(path: string, answer: { status?: number; body: string } | null): void;
  body(path: string): string;
}

/** An engine that gives the answers in `test/recorded/<folder>`, and its own 404 to anything else. */
export function recordedEngine(folder: string, metricsPath = "/metrics"): RecordedEngine {
  const answers = new Map<string, EngineAnswer>();
  let notFound: EngineAnswer = { status: 404, headers: {}, body: "" };
  for (const recorded of JSON.parse(recordedText(`${folder}/http.json`)) as RecordedAnswer[]) {
    const answer = { status: recorded.status, headers: Object.fromEntries(recorded.headers), body: recorded.body };
    if (recorded.label === "err-404-path") notFound = answer;
    else if (!answers.has(recorded.path)) answers.set(recorded.path, answer);
  }
  const metrics = recordedText(`${folder}/metrics.txt`);
  answers.set(metricsPath, { status: 200, headers: { "content-type": "text/plain" }, body: metrics });

  const asked: string[] = [];
  return {
    asked,
    ask: (path) => {
      asked.push(path);
      return Promise.resolve(answers.get(path) ?? notFound);
    },
    set: (path, answer) => {
      if (answer === null) answers.delete(path);
      else answers.set(path, { status: answer.status ?? 200, headers: {}, body: answer.body });
    },
    body: (path) => answers.get(path)?.body ?? "",
  };
}

export const refuses: AskEngine = () =>
  Promise.reject(
    new RouterError("engine_unreachable", "refused", { fault: "engine", httpStatus: 502, retryable: true }),
  );

/** Something that is no engine: the same answer under every path. */
export function always(status: number, body: string): AskEngine {
  return () => Promise.resolve({ status, headers: {}, body });
}
