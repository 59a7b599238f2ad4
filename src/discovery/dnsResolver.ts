import { Resolver } from "node:dns/promises";

export interface AddressRecord {
  readonly address: string;
  readonly ttl: number;
}

export interface ServiceRecord {
  readonly name: string;
  readonly port: number;
}

/** The look-ups that discovery makes. Errors carry the DNS code, as Node's do (`ENOTFOUND`, `ENODATA`, `ESERVFAIL`, …). */
export interface DnsResolver {
  resolve4(host: string): Promise<readonly AddressRecord[]>;
  resolve6(host: string): Promise<readonly AddressRecord[]>;
  resolveSrv(host: string): Promise<readonly ServiceRecord[]>;
}

/**
 * Asks the system's name servers, or those given as `host:port`. Unlike `getaddrinfo` it tells TTLs and does not read
 * the hosts file.
 */
export function systemResolver(servers: readonly string[] = []): DnsResolver {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  return {
    resolve4: (host) => resolver.resolve4(host, { ttl: true }),
    resolve6: (host) => resolver.resolve6(host, { ttl: true }),
    resolveSrv: (host) => resolver.resolveSrv(host),
  };
}

/** Whether a name server said that there are none, rather than that it could not tell. */
export function isNoRecords(cause: unknown): boolean {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : null;
  return code === "ENODATA" || code === "ENOTFOUND";
}
