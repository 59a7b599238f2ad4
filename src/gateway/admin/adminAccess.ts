import { hash, timingSafeEqual } from "node:crypto";
import { isLoopback } from "#src/config/loopback.ts";
import type { Secret } from "#src/config/secret.ts";
import { RouterError } from "#src/errors/routerError.ts";
import type { HttpHead } from "../http/httpRequest.ts";

/**
 * What a balancer or Kubernetes asks, which tells nothing but whether the router is well; and the status page's files,
 * which hold no data: the page itself asks for the token.
 */
const OPEN_PATHS = new Set(["/healthz", "/readyz", "/", "/status.js", "/status.css", "/icon.svg"]);

/** Whether an admin request may come in. */
export function adminAccess(head: HttpHead, token: Secret | undefined): RouterError | null {
  if (OPEN_PATHS.has(head.target)) return null;
  if (token === undefined) return fromThisMachine(head) ? null : forbidden();
  const given = /^bearer +(\S+) *$/i.exec(head.header("authorization") ?? "")?.[1] ?? "";
  const matches = timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", token.reveal(), "buffer"));
  return matches
    ? null
    : new RouterError("unauthorized", "The admin listener needs its bearer token.", {
        fault: "client",
        httpStatus: 401,
        retryable: false,
      });
}

/**
 * Without a token the loopback address is the only guard, and a web page in a local browser can pass it: by a name that it
 * makes resolve to 127.0.0.1, or by posting a form. Both show in the headers.
 */
function fromThisMachine(head: HttpHead): boolean {
  const host = head.header("host") ?? "";
  const origin = head.header("origin");
  const named = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : "";
  if (!isLoopback(named)) return false;
  return origin === null || origin === `http://${host}` || origin === `https://${host}`;
}

function forbidden(): RouterError {
  return new RouterError("forbidden", "Without a token, only this machine's own programs may use the admin listener.", {
    fault: "client",
    httpStatus: 403,
    retryable: false,
  });
}
