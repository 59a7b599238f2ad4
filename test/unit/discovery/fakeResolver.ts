import type { AddressRecord, DnsResolver, ServiceRecord } from "#src/discovery/dnsResolver.ts";

export class DnsError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`query failed: ${code}`);
    this.code = code;
  }
}

/** A name server whose records a test sets; an Error in their place is thrown, "hang" never answers. */
export class FakeResolver implements DnsResolver {
  a: AddressRecord[] | DnsError | "hang" = new DnsError("ENODATA");
  aaaa: AddressRecord[] | DnsError | "hang" = new DnsError("ENODATA");
  srv: ServiceRecord[] | DnsError | "hang" = new DnsError("ENODATA");
  queries = 0;

  resolve4(): Promise<readonly AddressRecord[]> {
    this.queries++;
    return answer(this.a);
  }

  resolve6(): Promise<readonly AddressRecord[]> {
    return answer(this.aaaa);
  }

  resolveSrv(): Promise<readonly ServiceRecord[]> {
    this.queries++;
    return answer(this.srv);
  }
}

function answer<Records>(records: Records | DnsError | "hang"): Promise<Records> {
  if (records === "hang") return new Promise(() => {});
  return records instanceof DnsError ? Promise.reject(records) : Promise.resolve(records);
}
