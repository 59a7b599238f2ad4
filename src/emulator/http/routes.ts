import * as adapters from "./adapterRoutes.ts";
import { answerTranscription } from "./audioRoute.ts";
import { answerChat } from "./chatRoute.ts";
import { answerCompletion } from "./completionsRoute.ts";
import * as emulator from "./emulatorRoutes.ts";
import type { Exchange } from "./exchange.ts";
import * as info from "./infoRoutes.ts";
import { answerCountTokens, answerMessages } from "./messagesRoute.ts";
import { answerEmbeddings, answerRerank, answerScore } from "./poolingRoutes.ts";
import { answerResponse } from "./responsesRoute.ts";
import { answerDetokenize, answerTokenize } from "./tokenRoutes.ts";

/** Answers one request, at once or later. May throw VllmError. */
export type Route = (exchange: Exchange) => void;

/** Routes that use the model: faults of requests hit these. */
const MODEL_ROUTES: Readonly<Record<string, Route>> = {
  "POST /v1/chat/completions": answerChat,
  "POST /v1/completions": answerCompletion,
  "POST /v1/responses": answerResponse,
  "POST /v1/messages": answerMessages,
  "POST /v1/messages/count_tokens": answerCountTokens,
  "POST /v1/embeddings": answerEmbeddings,
  "POST /v1/score": answerScore,
  "POST /score": answerScore,
  "POST /v1/rerank": answerRerank,
  "POST /v2/rerank": answerRerank,
  "POST /rerank": answerRerank,
  "POST /v1/audio/transcriptions": answerTranscription,
  "POST /v1/audio/translations": answerTranscription,
  "POST /tokenize": answerTokenize,
  "POST /detokenize": answerDetokenize,
};

const CONTROL_ROUTES: Readonly<Record<string, Route>> = {
  "GET /health": info.answerHealth,
  "GET /ping": info.answerPing,
  "POST /ping": info.answerPing,
  "GET /version": info.answerVersion,
  "GET /load": info.answerLoad,
  "GET /is_sleeping": info.answerIsSleeping,
  "GET /server_info": info.answerServerInfo,
  "GET /metrics": info.answerMetrics,
  "GET /v1/models": info.answerModels,
  "POST /reset_prefix_cache": info.answerResetPrefixCache,
  "POST /v1/load_lora_adapter": adapters.answerLoadAdapter,
  "POST /v1/unload_lora_adapter": adapters.answerUnloadAdapter,
};

const EMULATOR_ROUTES: Readonly<Record<string, Route>> = {
  "GET /emulator/faults": emulator.answerFaults,
  "POST /emulator/faults": emulator.changeFaults,
  "DELETE /emulator/faults": emulator.clearFaults,
  "POST /emulator/restart": emulator.answerRestart,
  "GET /emulator/stats": emulator.answerStats,
};

/** Kind `emulator`: not part of the engine it stands for; works whatever the faults. */
export type RouteKind = "model" | "control" | "emulator";

interface KnownRoute {
  readonly kind: RouteKind;
  readonly route: Route;
}

const ROUTES: ReadonlyMap<string, KnownRoute> = new Map([
  ...ofKind("model", MODEL_ROUTES),
  ...ofKind("control", CONTROL_ROUTES),
  ...ofKind("emulator", EMULATOR_ROUTES),
]);

/** What answers a request: a route, or the methods that the path has instead; none: there is no such path. */
export type Found = KnownRoute | { readonly kind: null; readonly allow: readonly string[] };

/** Looks a route up among those of the given kinds. */
export function findRoute(
  method: string,
  path: string,
  kinds: readonly RouteKind[] = ["model", "control", "emulator"],
): Found {
  const known = ROUTES.get(`${method} ${path}`);
  if (known !== undefined && kinds.includes(known.kind)) return known;
  const allow = [...ROUTES].flatMap(([key, { kind }]) => {
    const [otherMethod = "", otherPath] = key.split(" ");
    return otherPath === path && kinds.includes(kind) ? [otherMethod] : [];
  });
  return { kind: null, allow };
}

function ofKind(kind: RouteKind, routes: Readonly<Record<string, Route>>): [string, KnownRoute][] {
  return Object.entries(routes).map(([key, route]) => [key, { kind, route }]);
}
