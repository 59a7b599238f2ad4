import type { Cancel, Timers } from "../determinism/timers.ts";
import { isNoRecords, systemResolver, type DnsResolver } from "./dnsResolver.ts";
import { parseEndpoint } from "./parseEndpoint.ts";
import type { EngineEndpoint } from "./replicaSpec.ts";
import type { Source, SourceListener } from "./source.ts";

export interface DnsSourceOptions {
  readonly host: string;
  /** `address`: A and AAAA, all on `port`; `srv`: targets with their own ports. */
  readonly record: "address" | "srv";
  readonly port?: number;
  readonly scheme?: "http" | "https";
  /** What all engines under this name share: role, labels, key and so on. */
  readonly shared?: Omit<Partial<EngineEndpoint>, "url" | "name">;
  readonly timers: Timers;
  readonly resolver?: DnsResolver;
  /** Longest time between two look-ups; a shorter TTL shortens it, down to `minEveryMs`. */
  readonly everyMs?: number;
  readonly minEveryMs?: number;
  readonly limitMs?: number;
  readonly maxEndpoints?: number;
}

/** What one kind of record says: origins, and for how long. */
interface Answer {
  readonly hosts: readonly string[];
  readonly ttlMs: number;
}

/**
 * Engines behind a DNS name. A look-up that fails, or that finds nothing where something was, keeps the last set and is
 * reported: a name server in trouble must not empty the fleet. Each family of addresses is kept on its own.
 */
export class DnsSource implements Source {
  readonly name: string;
  readonly #options: Required<Omit<DnsSourceOptions, "host" | "record">> & Pick<DnsSourceOptions, "host" | "record">;
  readonly #last = new Map<string, Answer>();
  /** Hosts of the last set that was told. */
  #told = "";
  #listener: SourceListener | null = null;
  #cancel: Cancel = () => {};

  constructor(options: DnsSourceOptions) {
    const { host, record, port = 8000 } = options;
    this.name = record === "srv" ? `dns:srv:${host}` : `dns:${host}:${port}`;
    this.#options = {
      port: 8000,
      scheme: "http",
      shared: {},
      resolver: systemResolver(),
      everyMs: 10_000,
      minEveryMs: 1000,
      limitMs: 10_000,
      maxEndpoints: 65_536,
      ...options,
    };
  }

  async start(listener: SourceListener): Promise<void> {
    this.#listener = listener;
    await this.#look();
  }

  stop(): Promise<void> {
    this.#listener = null;
    this.#cancel();
    return Promise.resolve();
  }

  async #look(): Promise<void> {
    const { record, host, resolver, timers } = this.#options;
    const families =
      record === "srv"
        ? [this.#ask("SRV", async () => this.#services(await resolver.resolveSrv(host)))]
        : [
            this.#ask("A", async () => this.#addresses(await resolver.resolve4(host), (address) => address)),
            this.#ask("AAAA", async () => this.#addresses(await resolver.resolve6(host), (address) => `[${address}]`)),
          ];
    const failures = (await Promise.all(families)).filter((failure) => failure !== null);
    if (this.#listener === null) return;
    this.#tell(failures);
    this.#cancel = timers.after(this.#nextMs(failures.length > 0), () => void this.#look());
  }

  /** Keeps what a family of records says now; returns why it could not. */
  async #ask(family: string, resolve: () => Promise<Answer>): Promise<Error | null> {
    const { host, timers, limitMs } = this.#options;
    let cancel: Cancel = () => {};
    const limit = new Promise<never>((_, reject) => {
      cancel = timers.after(limitMs, () => reject(new Error(`no answer within ${limitMs} ms`)));
    });
    try {
      this.#last.set(family, await Promise.race([resolve(), limit]));
      return null;
    } catch (caught) {
      if (isNoRecords(caught)) {
        this.#last.set(family, { hosts: [], ttlMs: Number.POSITIVE_INFINITY });
        return null;
      }
      const why = caught instanceof Error ? caught.message : String(caught);
      return new Error(`Looking up ${family} of ${host} failed: ${why}`, { cause: caught });
    } finally {
      cancel();
    }
  }

  #addresses(records: readonly { address: string; ttl: number }[], write: (address: string) => string): Answer {
    return {
      hosts: records.map(({ address }) => `${write(address)}:${this.#options.port}`),
      ttlMs: 1000 * Math.min(...records.map(({ ttl }) => ttl)),
    };
  }

  /** Targets stay names: certificates are made for them, and connecting looks up their addresses, v4 or v6. */
  #services(records: readonly { name: string; port: number }[]): Answer {
    return {
      hosts: records.map(({ name, port }) => `${name.replace(/\.$/, "")}:${port}`),
      ttlMs: Number.POSITIVE_INFINITY,
    };
  }

  #tell(failures: readonly Error[]): void {
    const { shared, scheme, maxEndpoints, host } = this.#options;
    // Name servers rotate their answers, which is no change.
    const hosts = [...new Set([...this.#last.values()].flatMap((answer) => answer.hosts))]
      .sort()
      .slice(0, maxEndpoints);
    if (hosts.length > 0 && (failures.length === 0 || hosts.join() !== this.#told)) {
      this.#told = hosts.join();
      const endpoints = hosts.map((each) => parseEndpoint({ ...shared, url: `${scheme}://${each}` }));
      this.#listener?.endpoints(this.name, endpoints);
    }
    const [failure] = failures;
    if (failure !== undefined) this.#listener?.failed(this.name, failure);
    else if (hosts.length === 0) this.#listener?.failed(this.name, new Error(`There are no records for ${host}.`));
  }

  #nextMs(failed: boolean): number {
    const { everyMs, minEveryMs } = this.#options;
    if (failed || this.#told === "") return minEveryMs;
    const ttlMs = Math.min(...[...this.#last.values()].map((answer) => answer.ttlMs));
    return Math.min(everyMs, Math.max(minEveryMs, ttlMs));
  }
}
