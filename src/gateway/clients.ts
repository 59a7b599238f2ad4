import { hash, timingSafeEqual } from "node:crypto";
import type { Config } from "#src/config/schema.ts";
import { RouterError } from "#src/errors/routerError.ts";
import type { HttpHead } from "./http/httpRequest.ts";
import { TokenBucket } from "./tokenBucket.ts";

type KeyConfig = Config["keys"][number];

/** Somebody who may send requests. */
export interface Client {
  readonly name: string;
  /** Names it may ask for, as clients write them; null: all. */
  readonly models: ReadonlySet<string> | null;
  readonly className: string | null;
  readonly mayChooseClass: boolean;
  readonly mayNameTenants: boolean;
  /** Null: not limited. */
  readonly requests: TokenBucket | null;
  readonly tokens: TokenBucket | null;
}

/** Who asks when no keys are configured. Classes and tenants are a matter of trust, and everybody is trusted then. */
export const ANONYMOUS: Client = {
  name: "anonymous",
  models: null,
  className: null,
  mayChooseClass: true,
  mayNameTenants: true,
  requests: null,
  tokens: null,
};

interface Entry {
  readonly digest: Buffer;
  readonly client: Client;
}

/** The configured keys. */
export class Clients {
  /**
   * By the first bytes of the key's hash. Finding the entry takes a time that depends on the hash, which nobody can steer
   * without breaking SHA-256; the comparison itself is constant-time.
   */
  readonly #byPrefix: ReadonlyMap<number, readonly Entry[]>;
  readonly open: boolean;

  /** What is left of the limits passes from `previous` to the key of the same name, so that a reload refills nothing. */
  constructor(keys: readonly KeyConfig[], nowMs: number, previous: Clients | null = null) {
    const before = new Map([...(previous?.all() ?? [])].map((client) => [client.name, client]));
    const byPrefix = new Map<number, Entry[]>();
    for (const key of keys) {
      const digest = Buffer.from(key.hash.slice("sha256:".length), "hex");
      const entry = { digest, client: clientOf(key, nowMs, before.get(key.name)) };
      const prefix = digest.readUInt32BE(0);
      byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), entry]);
    }
    this.#byPrefix = byPrefix;
    this.open = keys.length === 0;
  }

  *all(): Generator<Client> {
    for (const entries of this.#byPrefix.values()) for (const { client } of entries) yield client;
  }

  /** Who sends this request. */
  sender(head: HttpHead): Client {
    return this.open ? ANONYMOUS : this.authenticate(head.header("authorization"), head.header("x-api-key"));
  }

  /**
   * Whose key this is: by `Authorization: Bearer` or Anthropic's `x-api-key`. Without configured keys everybody is
   * anonymous, whatever they send.
   */
  authenticate(authorization: string | null, apiKey: string | null): Client {
    if (this.open) return ANONYMOUS;
    const key = bearer(authorization) ?? apiKey;
    if (key === null) throw unauthorized("An API key is needed: Authorization: Bearer, or x-api-key.");
    const digest = hash("sha256", key, "buffer");
    for (const entry of this.#byPrefix.get(digest.readUInt32BE(0)) ?? []) {
      if (timingSafeEqual(entry.digest, digest)) return entry.client;
    }
    throw unauthorized("The API key is not known.");
  }
}

function clientOf(key: KeyConfig, nowMs: number, before: Client | undefined): Client {
  return {
    name: key.name,
    models: key.models === undefined ? null : new Set(key.models),
    className: key.class ?? null,
    mayChooseClass: key.mayChooseClass,
    mayNameTenants: key.mayNameTenants,
    requests: bucket(key.requestsPerMinute, before?.requests, nowMs),
    tokens: bucket(key.tokensPerMinute, before?.tokens, nowMs),
  };
}

function bucket(
  perMinute: number | undefined,
  before: TokenBucket | null | undefined,
  nowMs: number,
): TokenBucket | null {
  if (perMinute === undefined) return null;
  return before?.perMinute === perMinute ? before : new TokenBucket(perMinute, nowMs);
}

function bearer(authorization: string | null): string | null {
  return authorization === null ? null : (/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? null);
}

function unauthorized(message: string): RouterError {
  return new RouterError("unauthorized", message, { fault: "client", httpStatus: 401, retryable: false });
}
