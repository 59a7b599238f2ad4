/** Where an engine listens, taken apart once. */
export interface Origin {
  readonly tls: boolean;
  /** Without brackets, as sockets want it. */
  readonly hostname: string;
  readonly port: number;
  /** Value of the Host header. */
  readonly host: string;
  /** Prepended to each target; empty or `/prefix` without a slash at its end. */
  readonly pathPrefix: string;
}

/** `http://10.0.0.1:8000`, `https://[fd00::1]/prefix`. Throws TypeError on anything else; configuration checks it before. */
export function parseOrigin(url: string): Origin {
  const parsed = new URL(url);
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") throw new TypeError(`not an http origin: ${url}`);
  const tls = parsed.protocol === "https:";
  return {
    tls,
    hostname: parsed.hostname.startsWith("[") ? parsed.hostname.slice(1, -1) : parsed.hostname,
    port: parsed.port === "" ? (tls ? 443 : 80) : Number(parsed.port),
    host: parsed.host,
    pathPrefix: parsed.pathname.replace(/\/+$/u, ""),
  };
}
