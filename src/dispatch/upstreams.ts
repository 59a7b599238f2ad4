import { OriginPool } from "./originPool.ts";
import { parseOrigin } from "./origin.ts";
import { UPSTREAM_DEFAULTS } from "./upstreamOptions.ts";
import type { UpstreamOptions } from "./upstreamOptions.ts";

/** The connections to all engines, by origin. */
export class Upstreams {
  readonly #options: UpstreamOptions;
  readonly #pools = new Map<string, OriginPool>();

  constructor(options: Pick<UpstreamOptions, "clock" | "deadlines"> & Partial<UpstreamOptions>) {
    this.#options = { ...UPSTREAM_DEFAULTS, ...options };
  }

  /** Open connections, idle ones included. */
  get connections(): number {
    let count = 0;
    for (const pool of this.#pools.values()) count += pool.connections;
    return count;
  }

  pool(url: string): OriginPool {
    const known = this.#pools.get(url);
    if (known !== undefined) return known;
    // An engine that is gone leaves nothing behind: its pool goes with its last connection.
    const pool = new OriginPool(parseOrigin(url), this.#options, () => this.#pools.delete(url));
    this.#pools.set(url, pool);
    return pool;
  }

  /** Closes every connection, those in use too. */
  close(): void {
    for (const pool of this.#pools.values()) pool.close();
  }
}
