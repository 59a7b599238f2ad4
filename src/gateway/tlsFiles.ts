import { readFile } from "node:fs/promises";
import { createSecureContext, getCACertificates } from "node:tls";
import { ConfigError } from "#src/config/loadConfig.ts";
import type { Config } from "#src/config/schema.ts";
import type { ServerTls } from "./http/httpServer.ts";

/** Everything that TLS needs, read from files. */
export interface TlsMaterial {
  readonly listen: ServerTls | undefined;
  readonly admin: ServerTls | undefined;
  /** Authorities to trust towards engines, the usual ones included; undefined: just the usual ones. */
  readonly engineAuthorities: readonly string[] | undefined;
}

/** Throws ConfigError if a file is not there, or certificate and key don't go together. */
export async function readTlsFiles({ listen, admin, engineTls: { caFile } }: Config): Promise<TlsMaterial> {
  return {
    listen: await listenerTls("listen.tls", listen.tls),
    admin: await listenerTls("admin.tls", admin.tls),
    engineAuthorities:
      caFile === undefined ? undefined : [...getCACertificates(), await pem("engineTls.caFile", caFile)],
  };
}

async function listenerTls(key: string, tls: Config["listen"]["tls"]): Promise<ServerTls | undefined> {
  if (tls === undefined) return undefined;
  const cert = await pem(`${key}.certFile`, tls.certFile);
  const privateKey = await pem(`${key}.keyFile`, tls.keyFile);
  try {
    createSecureContext({ cert, key: privateKey });
  } catch (cause) {
    throw new ConfigError("", [`${key}: certificate and key cannot be used: ${messageOf(cause)}`], cause);
  }
  return { cert, key: privateKey };
}

async function pem(key: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new ConfigError("", [`${key}: ${JSON.stringify(path)} cannot be read: ${messageOf(cause)}`], cause);
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
