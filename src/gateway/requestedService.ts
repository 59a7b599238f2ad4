import { RouterError } from "#src/errors/routerError.ts";
import { DEFAULT_CLASS, type ClassTable } from "#src/scheduler/classes.ts";
import type { Client } from "./clients.ts";
import type { HttpHead } from "./http/httpRequest.ts";
import type { ModelNames } from "./modelNames.ts";

/** How a request is to be served, and for whom. */
export interface RequestedService {
  readonly className: string;
  readonly tenant: string;
  /** On the clock of `arrivedMs`; past it nobody waits for the answer. */
  readonly deadlineMs: number;
}

const CLASS_HEADER = "x-kvasir-class";
const TENANT_HEADER = "x-kvasir-tenant";
const TIMEOUT_HEADER = "x-kvasir-timeout-ms";

/** As key names are, so that a tenant's name can be told from its key's. */
const TENANT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** What the head asks for, within what the key allows. Throws RouterError for what may not or cannot be asked for. */
export function requestedService(
  head: HttpHead,
  client: Client,
  asked: { readonly servedName: string; readonly model: string },
  tools: { readonly names: ModelNames; readonly classes: ClassTable; readonly totalMs: number },
): RequestedService {
  return {
    className: classOf(head.header(CLASS_HEADER), client, asked, tools),
    tenant: tenantOf(head.header(TENANT_HEADER), client),
    deadlineMs: head.arrivedMs + Math.min(tools.totalMs, timeoutMs(head.header(TIMEOUT_HEADER))),
  };
}

/** What the head alone tells; what may not be asked for is refused later, with its reason. */
export function senderOf(
  head: HttpHead,
  client: Client,
  classes: ClassTable,
): Pick<RequestedService, "className" | "tenant"> {
  const asked = client.mayChooseClass ? head.header(CLASS_HEADER) : null;
  const tenant = client.mayNameTenants ? head.header(TENANT_HEADER) : null;
  return {
    className: asked !== null && classes.has(asked) ? asked : (client.className ?? DEFAULT_CLASS),
    tenant: tenant === null ? client.name : `${client.name}/${tenant}`,
  };
}

/** The header's class if the key may choose, else the key's, else the model's. */
function classOf(
  asked: string | null,
  client: Client,
  { servedName, model }: { readonly servedName: string; readonly model: string },
  { names, classes }: { readonly names: ModelNames; readonly classes: ClassTable },
): string {
  if (asked === null) {
    const settings = names.settings(servedName) ?? names.settings(model);
    return client.className ?? settings?.class ?? DEFAULT_CLASS;
  }
  if (!client.mayChooseClass) throw forbidden("choose its service class", CLASS_HEADER);
  if (classes.has(asked)) return asked;
  const known = classes.all().map(({ name }) => name);
  throw invalid(`There is no service class "${asked}", only ${known.join(", ")}.`, CLASS_HEADER);
}

/** The key's name; behind it, where the key may speak for several, the name of one of them. */
function tenantOf(asked: string | null, client: Client): string {
  if (asked === null) return client.name;
  if (!client.mayNameTenants) throw forbidden("name tenants", TENANT_HEADER);
  if (TENANT_NAME.test(asked)) return `${client.name}/${asked}`;
  throw invalid(
    `"${asked}" cannot be a tenant's name: 1..128 letters, digits, dots, dashes, underscores.`,
    TENANT_HEADER,
  );
}

function timeoutMs(asked: string | null): number {
  if (asked === null) return Number.POSITIVE_INFINITY;
  const timeout = Number(asked);
  if (/^\d{1,9}$/.test(asked) && timeout >= 1) return timeout;
  throw invalid(`"${asked}" is not a whole number of milliseconds from 1 to 999999999.`, TIMEOUT_HEADER);
}

function forbidden(what: string, header: string): RouterError {
  return new RouterError("forbidden", `This key may not ${what}.`, {
    fault: "client",
    httpStatus: 403,
    retryable: false,
    param: header,
  });
}

function invalid(message: string, header: string): RouterError {
  return new RouterError("invalid_request", message, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
    param: header,
  });
}
