import { RouterError } from "../errors/routerError.ts";

/** A value of an endpoint that cannot be used, with what is allowed instead. The client's fault where it comes by the admin API. */
export function badEndpoint(param: string, message: string): RouterError {
  return new RouterError("invalid_request", `${param}: ${message}`, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
    param,
  });
}

/**
 * The one spelling of an engine's address: scheme, host and port as WHATWG URLs write them (IPv6 compressed and in
 * brackets, default port left out), then the path prefix without its trailing slash. Two spellings of one address must
 * not become two replicas.
 */
export function normalEngineUrl(text: string): string {
  const shown = JSON.stringify(text.replace(/\/\/[^/]*@/, "//…@"));
  const allowed = "allowed is an origin such as http://10.0.0.1:8000 or https://[fd00::1]:8000, with or without a path";
  // The URL standard has no zone ids, and one names an interface of one machine only.
  if (/\[[^\]]*%/.test(text)) throw badEndpoint("url", `${shown} has an IPv6 zone id; use an address without one.`);
  if (!URL.canParse(text)) throw badEndpoint("url", `${shown} is not a URL; ${allowed}.`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw badEndpoint("url", `${shown} is not http or https; ${allowed}.`);
  if (url.username !== "" || url.password !== "")
    throw badEndpoint("url", `${shown} holds credentials; give the key as apiKey.`);
  if (url.search !== "" || url.hash !== "") throw badEndpoint("url", `${shown} has a query or fragment; ${allowed}.`);
  if (url.port === "0") throw badEndpoint("url", `${shown} has port 0; allowed is 1..65535.`);
  return url.origin + url.pathname.replace(/\/+$/, "");
}

/** `host:port`, the port always written out, then the path prefix. */
export function defaultName(normalUrl: string): string {
  const { hostname, port, protocol, pathname } = new URL(normalUrl);
  return `${hostname}:${port || (protocol === "https:" ? "443" : "80")}${pathname === "/" ? "" : pathname}`;
}
