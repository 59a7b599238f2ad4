import type { Config } from "#src/config/schema.ts";
import { modelNotFound } from "#src/errors/shared.ts";
import type { Fleet } from "#src/fleet/fleet.ts";
import type { BodyMembers } from "#src/request/legs/bodyMembers.ts";
import type { RequestShape } from "#src/request/requestShape.ts";
import type { Identity } from "#src/request/identity.ts";
import type { RouteRequest } from "#src/request/routeRequest.ts";
import { sessionName } from "#src/routing/sessionName.ts";
import type { ClassTable } from "#src/scheduler/classes.ts";
import type { Client } from "./clients.ts";
import type { HttpRequest } from "./http/httpRequest.ts";
import type { ModelNames } from "./modelNames.ts";
import { promptIdentity, type IdentityTools } from "./promptIdentity.ts";
import { modelsNotKnown, refuseEncoded } from "./refusals.ts";
import { splittingOf } from "./splitting.ts";
import { requestedService } from "./requestedService.ts";

export interface PrepareTools extends IdentityTools {
  readonly names: ModelNames;
  readonly classes: ClassTable;
  readonly limits: Config["limits"];
}

/** A request of a client that may go to an engine. */
export interface PreparedRequest {
  readonly shape: RequestShape;
  /** The fleet's name for what the client asked for: a base model or an adapter. */
  readonly servedName: string;
  readonly request: RouteRequest;
  /** Null: it is not split, whatever it asks for. */
  readonly members: BodyMembers | null;
}

/** Reads a client's request into what the scheduler needs. A promise only where a thread has part in it. */
export function prepare(
  id: string,
  incoming: HttpRequest,
  client: Client,
  tools: PrepareTools,
): PreparedRequest | Promise<PreparedRequest> {
  const { head, body } = incoming;
  refuseEncoded(head.header("content-encoding"));
  const contentType = head.header("content-type") ?? "";
  const limits = { maxBodyBytes: tools.limits.bodyBytes };
  const shape = tools.reader.read(head.method, head.target, contentType, body, limits);
  return shape instanceof Promise
    ? shape.then((late) => identified(id, incoming, late, client, tools))
    : identified(id, incoming, shape, client, tools);
}

function identified(
  id: string,
  { head, body }: HttpRequest,
  shape: RequestShape,
  client: Client,
  tools: PrepareTools,
): PreparedRequest | Promise<PreparedRequest> {
  const { fleet, names, classes, limits } = tools;
  const servedName = names.choose(shape.model, fleet.models(), client);
  const { model, adapter } = resolve(servedName, shape.model ?? servedName, fleet);
  const service = requestedService(head, client, { servedName, model }, { names, classes, totalMs: limits.totalMs });
  const identity = promptIdentity(shape, body, { model, adapter }, tools);
  const splitting = splittingOf(fleet.handoffs(model), body, shape);
  const prepared = (known: Identity): PreparedRequest => ({
    shape,
    servedName,
    members: splitting?.members ?? null,
    request: {
      id,
      model,
      adapter,
      identity: known,
      maxOutputTokens: shape.maxOutputTokens,
      sequences: shape.sequences,
      session: sessionName(head.header("x-session-id") ?? shape.promptCacheKey ?? shape.user),
      tenant: service.tenant,
      className: service.className,
      arrivedMs: head.arrivedMs,
      deadlineMs: service.deadlineMs,
      bodyBytes: body.length,
      generates: shape.generates,
      ...splitting?.route,
    },
  });
  return identity instanceof Promise ? identity.then(prepared) : prepared(identity);
}

function resolve(servedName: string, asked: string, fleet: Fleet): { model: string; adapter: string | null } {
  const resolved = fleet.resolve(servedName);
  if (resolved !== null) return resolved;
  const replicas = fleet.replicas();
  // One that was not asked yet may be the one that has it.
  if (replicas.length > 0 && replicas.every(({ profile }) => profile !== null)) {
    throw modelNotFound(asked);
  }
  throw modelsNotKnown();
}
