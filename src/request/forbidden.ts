/**
 * What only the router may say: KV hand-off, bootstrap rooms, data-parallel ranks, and ids by which a request could be
 * aborted. An engine that got incomplete ones from a client was seen to die.
 */
const FORBIDDEN_NAMES: ReadonlySet<string> = new Set([
  "kv_transfer_params",
  "ec_transfer_params",
  "disaggregated_params",
  "routed_dp_rank",
  "data_parallel_rank",
  "decode_tp_size",
  "request_id",
  "rid",
]);
const FORBIDDEN_PREFIXES = ["bootstrap_", "disagg_", "remote_", "do_remote_"];
const FIRST_BYTES: ReadonlySet<number> = new Set(
  [...FORBIDDEN_NAMES, ...FORBIDDEN_PREFIXES].map((name) => name.charCodeAt(0)),
);

export function isForbidden(name: string): boolean {
  return FORBIDDEN_NAMES.has(name) || FORBIDDEN_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** A quick test that spares making a string of most names: no forbidden one begins with another byte. */
export function mayBeForbidden(firstByte: number): boolean {
  return FIRST_BYTES.has(firstByte);
}
