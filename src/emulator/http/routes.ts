import { answerChat } from "./chatRoute.ts";
import { answerCompletion } from "./completionsRoute.ts";
import type { Exchange } from "./exchange.ts";
import * as info from "./infoRoutes.ts";

/** Answers one request, at once or later. May throw VllmError. */
export type Route = (exchange: Exchange) => void;

/** Routes that use the model: faults of requests hit these. */
const MODEL_ROUTES: Readonly<Record<string, Route>> = {
  "POST /v1/chat/completions": answerChat,
  "POST /v1/completions": answerCompletion,
};

const CONTROL_ROUTES: Readonly<Record<string, Route>> = {
  "GET /health": info.answerHealth,
  "GET /ping": info.answerPing,
  "POST /ping": info.answerPing,
  "GET /version": info.answerVersion,
  "GET /load": info.answerLoad,
  "GET /server_info": info.answerServerInfo,
  "GET /metrics": info.answerMetrics,
  "GET /v1/models": info.answerModels,
  "POST /reset_prefix_cache": info.answerResetPrefixCache,
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
]);

const PATHS = new Set([...ROUTES.keys()].map((key) => key.slice(key.indexOf(" ") + 1)));

export function findRoute(method: string, path: string): KnownRoute | "unknown path" | "other method" {
  return ROUTES.get(`${method} ${path}`) ?? (PATHS.has(path) ? "other method" : "unknown path");
}

function ofKind(kind: RouteKind, routes: Readonly<Record<string, Route>>): [string, KnownRoute][] {
  return Object.entries(routes).map(([key, route]) => [key, { kind, route }]);
}
