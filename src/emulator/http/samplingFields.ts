import type { GenerationRequest } from "../generation.ts";
import { pythonFloat } from "../pythonFloat.ts";
import { isTrue, numberField, stringField, stringList, type JsonBody } from "./jsonBody.ts";
import { badRequest } from "./vllmError.ts";

/** What the OpenAI-style routes share about how to generate; without the prompt. */
export function readSampling(
  body: JsonBody,
  limits: { readonly maxTokens: number | null; readonly adapter: string | null },
): Omit<GenerationRequest, "prompts"> {
  const { maxTokens } = limits;
  if (maxTokens !== null && maxTokens < 1)
    throw badRequest(
      `max_tokens must be at least 1, got ${maxTokens}. (parameter=max_tokens, value=${maxTokens})`,
      "max_tokens",
    );
  const temperature = numberField(body, "temperature");
  if (temperature !== null && temperature < 0) {
    const shown = pythonFloat(temperature);
    throw badRequest(
      `temperature must be non-negative, got ${shown}. (parameter=temperature, value=${shown})`,
      "temperature",
    );
  }
  const salt = stringField(body, "cache_salt");
  if (salt === "")
    throw badRequest(
      "Parameter 'cache_salt' must be a non-empty string if provided. (parameter=cache_salt)",
      "cache_salt",
    );
  const promptLogprobs = numberField(body, "prompt_logprobs");
  if (promptLogprobs !== null && isTrue(body["stream"]))
    throw badRequest(
      "`prompt_logprobs` are not available when `stream=True`. (parameter=prompt_logprobs)",
      "prompt_logprobs",
    );
  const choicesPerPrompt = numberField(body, "n") ?? 1;
  if (!Number.isInteger(choicesPerPrompt) || choicesPerPrompt < 1 || choicesPerPrompt > 128)
    throw badRequest(`n must be from 1 to 128, got ${choicesPerPrompt}. (parameter=n, value=${choicesPerPrompt})`, "n");
  return {
    choicesPerPrompt,
    maxTokens,
    minTokens: numberField(body, "min_tokens") ?? 0,
    ignoreEnd: isTrue(body["ignore_eos"]),
    stop: stringList(body, "stop"),
    adapter: limits.adapter,
    salt,
    priority: numberField(body, "priority") ?? 0,
    readsCache: promptLogprobs === null,
  };
}

/** A prefill without an answer. */
export function readPooling(body: JsonBody, adapter: string | null): Omit<GenerationRequest, "prompts"> {
  return { ...readSampling(body, { maxTokens: null, adapter }), maxTokens: 0, choicesPerPrompt: 1, stop: [] };
}

export interface StreamFields {
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
}

export function readStream(body: JsonBody): StreamFields {
  const options = (body["stream_options"] ?? {}) as Record<string, unknown>;
  const includeUsage = isTrue(options["include_usage"]);
  return {
    stream: isTrue(body["stream"]),
    includeUsage,
    continuousUsage: includeUsage && isTrue(options["continuous_usage_stats"]),
  };
}
