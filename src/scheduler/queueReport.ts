import { serviceOrder } from "./flows/serviceOrder.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import type { ModelShare } from "./flows/modelShare.ts";
import type { Ticket } from "./ticket.ts";
import type { WaitingRoom } from "./waitingRoom.ts";

/** One request that waits in the router. */
export interface WaitingRequest {
  readonly requestId: string;
  readonly model: string;
  readonly className: string;
  readonly tenant: string;
  /** Requests of its model that are to be served before it, if nobody else comes. */
  readonly ahead: number;
  readonly waitedMs: number;
  /** The replica that it waits for; null: whichever takes it first. */
  readonly replica: string | null;
  /** Predicted time that its prompt takes there. */
  readonly workMs: number;
}

/** Who waits for a model, in the order of service as it stands now. */
export function waitingInOrder(share: ModelShare<Ticket>, nowMs: number): WaitingRequest[] {
  return serviceOrder(share, ({ place, sequence }) => place?.rank ?? sequence).map(
    ({ request, home, sinceMs, workMs }, ahead) => ({
      requestId: request.id,
      model: request.model,
      className: request.className,
      tenant: request.tenant,
      ahead,
      waitedMs: nowMs - sinceMs,
      replica: home?.id ?? null,
      workMs,
    }),
  );
}

/** Those of one class that wait for one model. */
export interface WaitingClass {
  readonly model: string;
  readonly className: string;
  readonly requests: number;
  /** How long the one that came first has waited. */
  readonly longestMs: number;
  /** Predicted wait of one more, of a tenant that has nothing waiting; null: too little was seen to tell. */
  readonly expectedMs: number | null;
}

/** No tenant has this name. */
const NOBODY = "";

export function waitingByClass(
  room: WaitingRoom,
  expectedMs: (request: Pick<RouteRequest, "model" | "className" | "tenant">) => number | null,
  nowMs: number,
): readonly WaitingClass[] {
  const sinceMs = new Map<string, number>();
  for (const { request, sinceMs: own } of room.tickets()) {
    const key = `${request.model}\u0000${request.className}`;
    sinceMs.set(key, Math.min(own, sinceMs.get(key) ?? own));
  }
  return room.models().flatMap((model) =>
    [...room.shareOf(model).classes()]
      .filter(({ waiting }) => waiting > 0)
      .map(({ name, waiting }) => ({
        model,
        className: name,
        requests: waiting,
        longestMs: nowMs - (sinceMs.get(`${model}\u0000${name}`) ?? nowMs),
        expectedMs: expectedMs({ model, className: name, tenant: NOBODY }),
      })),
  );
}
