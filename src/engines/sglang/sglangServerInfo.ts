import { z } from "zod";
import { askForJson } from "../answers.ts";
import type { AskEngine } from "../engineAdapter.ts";

const natural = z.number().int().positive().nullish().catch(null);

/**
 * The start arguments and what the scheduler made of them. Two engines beside SGLang have a `/server_info`; only
 * SGLang's has the tensor-parallel size at its top.
 */
const ServerInfo = z.object({
  tp_size: z.number(),
  version: z.string().nullish().catch(null),
  dp_size: natural,
  page_size: natural,
  max_running_requests: natural,
  max_total_num_tokens: natural,
  disable_radix_cache: z.boolean().nullish().catch(null),
  internal_states: z
    .array(z.object({ effective_max_running_requests_per_dp: natural, max_total_num_tokens: natural }))
    .nullish()
    .catch(null),
});

export interface SglangServerInfo {
  readonly version: string | null;
  readonly dataParallelRanks: number;
  readonly pageTokens: number | null;
  readonly maxRunningRequests: number | null;
  readonly kvCapacityTokens: number | null;
  readonly prefixCachingEnabled: boolean | null;
}

/** Null if this is not SGLang. */
export async function askForServerInfo(ask: AskEngine): Promise<SglangServerInfo | null> {
  for (const path of ["/server_info", "/get_server_info"]) {
    const read = ServerInfo.safeParse(await askForJson(ask, path));
    if (!read.success) continue;
    const info = read.data;
    const state = info.internal_states?.[0];
    return {
      version: info.version ?? null,
      dataParallelRanks: info.dp_size ?? 1,
      pageTokens: info.page_size ?? null,
      maxRunningRequests: state?.effective_max_running_requests_per_dp ?? info.max_running_requests ?? null,
      kvCapacityTokens: info.max_total_num_tokens ?? state?.max_total_num_tokens ?? null,
      prefixCachingEnabled: typeof info.disable_radix_cache === "boolean" ? !info.disable_radix_cache : null,
    };
  }
  return null;
}
