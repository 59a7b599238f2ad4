import { isDeepStrictEqual } from "node:util";
import type { Config } from "#src/config/schema.ts";

/** Parts of a configuration that a running router cannot take over. */
const FIXED: readonly (readonly [key: string, read: (config: Config) => unknown])[] = [
  ["listen", ({ listen }) => listen],
  ["admin.enabled", ({ admin }) => admin.enabled],
  ["admin.host", ({ admin }) => admin.host],
  ["admin.port", ({ admin }) => admin.port],
  ["admin.tls", ({ admin }) => admin.tls],
  ["engineTls", ({ engineTls }) => engineTls],
  ["discovery.maxEngines", ({ discovery }) => discovery.maxEngines],
  ["identity", ({ identity }) => identity],
  ["record", ({ record }) => record],
  ["limits.connections", ({ limits }) => limits.connections],
  ["log.level", ({ log }) => log.level],
];

/** The keys whose change waits for a restart. */
export function restartKeys(running: Config, wanted: Config): string[] {
  return FIXED.filter(([, read]) => !isDeepStrictEqual(read(running), read(wanted))).map(([key]) => key);
}
