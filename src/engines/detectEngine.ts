import type { EngineKind } from "../discovery/replicaSpec.ts";
import { ADAPTERS } from "./adapters.ts";
import type { AskEngine, EngineAdapter, EngineAnswer, EngineProfile } from "./engineAdapter.ts";

export interface DetectedEngine {
  readonly adapter: EngineAdapter;
  readonly profile: EngineProfile;
}

/**
 * Finds out which engine answers, the hinted kind first; null if none of the known ones. Each route is asked at most
 * once however many adapters look at it. Throws RouterError if nothing answers at all.
 */
export async function detectEngine(ask: AskEngine, hint: EngineKind | null): Promise<DetectedEngine | null> {
  const once = askOnce(ask);
  const order = [...ADAPTERS].sort((a, b) => Number(b.kind === hint) - Number(a.kind === hint));
  for (const adapter of order) {
    const profile = await adapter.probe(once);
    if (profile !== null) return { adapter, profile };
  }
  return null;
}

function askOnce(ask: AskEngine): AskEngine {
  const answers = new Map<string, Promise<EngineAnswer>>();
  return (path, options) => {
    const known = answers.get(path);
    if (known !== undefined) return known;
    const answer = ask(path, options);
    answers.set(path, answer);
    return answer;
  };
}
