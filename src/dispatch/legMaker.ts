import { adapterOf } from "#src/engines/adapters.ts";
import type { Clock } from "#src/determinism/clock.ts";
import type { Call } from "./call.ts";
import { Leg } from "./leg.ts";
import type { LegOptions } from "./leg.ts";
import { buildRequestHead } from "./requestHead.ts";
import type { Placed } from "./schedulerPort.ts";
import type { Upstreams } from "./upstreams.ts";

type Chosen = Pick<LegOptions, "body" | "downstream" | "answerHeaders" | "stripUsage" | "listener"> &
  Partial<Pick<LegOptions, "sendBeforeMs" | "refusesErrors">>;

/** What differs between the legs of a call. */
export interface LegPlan extends Chosen {
  readonly replica: Placed["replica"];
  readonly requestId: string;
  /** The router reads the answer itself, so it must not be compressed. */
  readonly readsAnswer?: boolean;
}

/** Makes a leg of a call to one replica. Throws where its address cannot be used. */
export function makeLeg<P extends Placed>(
  call: Call<P>,
  { upstreams, clock }: { readonly upstreams: Upstreams; readonly clock: Clock },
  { replica, requestId, readsAnswer = false, ...chosen }: LegPlan,
): Leg {
  const { endpoint, rank, profile } = replica;
  const pool = upstreams.pool(endpoint.url);
  const head = buildRequestHead({
    method: call.method,
    target: call.target,
    clientHeaders: readsAnswer ? withoutEncoding(call.headers) : call.headers,
    origin: pool.origin,
    requestId,
    engineKey: endpoint.apiKey,
    rankHeader: rank === null || profile === null ? null : adapterOf(profile.kind).rankHeader(rank),
    bodyBytes: chosen.body.reduce((sum, part) => sum + part.length, 0),
  });
  const totalMs = call.limits.totalMs ?? Number.POSITIVE_INFINITY;
  return new Leg({
    clock,
    pool,
    method: call.method,
    head,
    limits: call.limits,
    totalDeadlineMs: Math.min(call.request.deadlineMs, call.request.arrivedMs + totalMs),
    ...chosen,
  });
}

function withoutEncoding(headers: Call<Placed>["headers"]): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2)
    if (headers[at]!.toLowerCase() !== "accept-encoding") kept.push(headers[at]!, headers[at + 1]!);
  return kept;
}
