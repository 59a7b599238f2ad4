import { createHash, randomBytes } from "node:crypto";

/** A new client key: 256 random bits, with a prefix that secret scanners can find. */
export function newClientKey(): string {
  return `kv-${randomBytes(32).toString("base64url")}`;
}

/**
 * What the configuration holds of a key. A plain SHA-256 is enough for 256 random bits: there is no dictionary to try,
 * and a slow hash would be paid on every request.
 */
export function hashClientKey(key: string): string {
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}
