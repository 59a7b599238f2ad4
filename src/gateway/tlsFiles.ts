import { readFile } from "node:fs/promises";
import { createSecureContext, getCACertificates } from "node:tls";
import { ConfigError, problemAt } from "#src/config/configError.ts";
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
export async function readTlsFiles(config: Config): Promise<TlsMaterial> {
  const { caFile } = config.engineTls;
  return {
    listen: await listenerTls(config, "listen"),
    admin: await listenerTls(config, "admin"),
    engineAuthorities:
      caFile === undefined ? undefined : [...getCACertificates(), await pem(config, ["engineTls", "caFile"], caFile)],
  };
}

async function listenerTls(config: Config, listener: "listen" | "admin"): Promise<ServerTls | undefined> {
  const { tls } = config[listener];
  if (tls === undefined) return undefined;
  const cert = await pem(config, [listener, "tls", "certFile"], tls.certFile);
  const privateKey = await pem(config, [listener, "tls", "keyFile"], tls.keyFile);
  try {
    createSecureContext({ cert, key: privateKey });
  } catch (cause) {
    const what = `certificate and key cannot be used: ${messageOf(cause)}`;
    throw new ConfigError([problemAt(config, [listener, "tls"], what)], cause);
  }
  return { cert, key: privateKey };
}

async function pem(config: Config, key: readonly string[], path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const what = `${JSON.stringify(path)} cannot be read: ${messageOf(cause)}`;
    throw new ConfigError([problemAt(config, key, what)], cause);
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
