import type { ApiKind } from "#src/request/apiKind.ts";
import { rawValue, type BodyMembers } from "#src/request/legs/bodyMembers.ts";
import type { UnsplitReason } from "./handoff.ts";

/**
 * Members that say how much output is wanted and in what form. The prefill leg has none of the client's: it is asked for
 * one token, in one piece, that nobody reads. The decode leg keeps all of them.
 */
export const OUTPUT_MEMBERS: ReadonlySet<string> = new Set([
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "max_new_tokens",
  "n_predict",
  "min_tokens",
  "min_new_tokens",
  "n",
  "best_of",
  "stream",
  "stream_options",
  "stream_interval",
  "logprobs",
  "top_logprobs",
  "prompt_logprobs",
  "logprob_token_ids",
  "return_token_ids",
  "return_tokens_as_token_ids",
  "thinking_token_budget",
  "max_tool_calls",
  "store",
  "background",
]);

const LIMITS: Partial<Readonly<Record<ApiKind, string>>> = {
  chat: `"max_tokens":1,"max_completion_tokens":1`,
  completions: `"max_tokens":1`,
  messages: `"max_tokens":1`,
  responses: `"max_output_tokens":1,"store":false`,
};

/** The members by which a prefill leg is limited; null: nothing is known of this API's. */
export function prefillLimits(api: ApiKind): string | null {
  const limits = LIMITS[api];
  return limits === undefined ? null : `${limits},"stream":false`;
}

/** What no protocol can split, whichever engine. */
export function commonObstacle(request: BodyMembers): UnsplitReason | null {
  const { shape } = request;
  if (!shape.generates || shape.maxOutputTokens === 0) return "no_output";
  if (rawValue(request, "use_beam_search") === "true") return "beam_search";
  // Log-probabilities of the prompt come from whoever computes it, and the client hears the other side.
  if (says(request, "prompt_logprobs") || rawValue(request, "echo") === "true") return "prompt_logprobs";
  if (says(request, "previous_response_id") || rawValue(request, "background") === "true") return "stored_state";
  return null;
}

/** A tool must be called: one token of a call is none, and engines fail on reading it. */
export function mustCallTool(request: BodyMembers): boolean {
  const choice = rawValue(request, "tool_choice");
  if (choice === null || choice === "null") return false;
  return choice !== `"auto"` && choice !== `"none"` && !/"type"\s*:\s*"(?:auto|none)"/u.test(choice);
}

/** More than one sequence, whether by `n` or by a list of prompts. */
export function wantsMany(request: BodyMembers): boolean {
  return request.shape.sequences > 1 || Number(rawValue(request, "best_of") ?? 1) > 1;
}

function says(request: BodyMembers, name: string): boolean {
  const value = rawValue(request, name);
  return value !== null && value !== "null";
}
