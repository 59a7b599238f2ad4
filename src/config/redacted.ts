import type { Config } from "./schema.ts";

/** The configuration in use, for the admin API: secrets and key hashes are not in it. */
export function redacted(config: Config): unknown {
  const keys = config.keys.map((key) => ({ ...key, hash: "[secret]" }));
  return JSON.parse(JSON.stringify({ ...config, keys }));
}
