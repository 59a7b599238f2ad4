import type { Choice, Generation } from "../generation.ts";
import type { EngineTokenizer } from "../tokens/engineTokenizer.ts";
import type { Exchange } from "./exchange.ts";
import { isTrue, missingField, numberField, type JsonBody } from "./jsonBody.ts";
import { readSampling, readStream, type StreamFields } from "./samplingFields.ts";
import { runningUsage, streamUsage, unaryUsage } from "./usage.ts";
import { badRequest } from "./vllmError.ts";

const DEFAULT_MAX_TOKENS = 16;

/** `POST /v1/completions` */
export function answerCompletion(exchange: Exchange): void {
  const body = exchange.json();
  const prompts = readPrompts(exchange.context.tokenizer, body, "prompt");
  const adapter = exchange.adapterOf(body);
  const model = adapter ?? exchange.context.options.model;
  const maxTokens = numberField(body, "max_tokens") ?? DEFAULT_MAX_TOKENS;
  const request = { ...readSampling(body, { maxTokens, adapter }), prompts };
  const shown: Shown = { ids: isTrue(body["return_token_ids"]), echo: isTrue(body["echo"]) };
  const stream = readStream(body);
  if (stream.stream) {
    const writer = new CompletionStream(exchange, model, stream, shown);
    writer.start(exchange.generate(request, model, writer));
    return;
  }
  const generation = exchange.generate(request, model, {
    token: () => {},
    done: () => exchange.answerJson(completion(exchange, generation, model, shown)),
  });
}

/** A prompt in any of its four forms: text, texts, token ids, lists of token ids. Throws VllmError for anything else. */
export function readPrompts(tokenizer: EngineTokenizer, body: JsonBody, field: string): Uint32Array[] {
  const value = body[field];
  if (value === undefined || value === null) throw missingField(field, body);
  if (typeof value === "string") return [promptOf(tokenizer, value)];
  if (!Array.isArray(value) || value.length === 0) throw badRequest(`${field} must not be empty.`, field);
  if (value.every((entry) => typeof entry === "number")) return [promptOf(tokenizer, value)];
  return value.map((prompt) => promptOf(tokenizer, prompt));
}

function promptOf(tokenizer: EngineTokenizer, value: unknown): Uint32Array {
  if (typeof value === "string") {
    // An empty prompt still has its first token, as models with a start token have it.
    return value === "" ? Uint32Array.of(0) : tokenizer.encode(value);
  }
  if (!Array.isArray(value) || value.length === 0) throw badRequest("Each prompt must be text or a list of token ids.");
  for (const id of value) {
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id > 0xffffffff)
      throw badRequest(`Token id ${JSON.stringify(id)} is out of vocabulary`);
  }
  return Uint32Array.from(value as number[]);
}

interface Shown {
  readonly ids: boolean;
  readonly echo: boolean;
}

function completion(exchange: Exchange, generation: Generation, model: string, shown: Shown): unknown {
  return {
    id: `cmpl-${exchange.requestId}`,
    object: "text_completion",
    created: exchange.createdSeconds,
    model,
    choices: generation.choices.map((choice) => ({
      index: choice.index,
      text: shown.echo ? exchange.context.tokenizer.decode(choice.prompt) + choice.text : choice.text,
      logprobs: null,
      finish_reason: choice.finishReason,
      stop_reason: choice.stopReason,
      token_ids: shown.ids ? choice.tokenIds : null,
      prompt_logprobs: null,
      prompt_token_ids: shown.ids ? Array.from(choice.prompt) : null,
      routed_experts: null,
    })),
    service_tier: null,
    system_fingerprint: exchange.context.fingerprint,
    usage: unaryUsage(generation, null),
    kv_transfer_params: null,
    ec_transfer_params: null,
    metrics: null,
  };
}

/** Writes vLLM's stream: a chunk for each token, usage if wanted, `[DONE]`. */
class CompletionStream {
  readonly #exchange: Exchange;
  readonly #stream: StreamFields;
  readonly #shown: Shown;
  readonly #head: string;
  #generation: Generation | null = null;

  constructor(exchange: Exchange, model: string, stream: StreamFields, shown: Shown) {
    this.#exchange = exchange;
    this.#stream = stream;
    this.#shown = shown;
    const id = JSON.stringify(`cmpl-${exchange.requestId}`);
    this.#head = `{"id":${id},"object":"text_completion","created":${exchange.createdSeconds},"model":${JSON.stringify(model)},"choices":[`;
  }

  start(generation: Generation): void {
    this.#generation = generation;
    this.#exchange.startStream();
  }

  token(choice: Choice): void {
    const generation = this.#generation;
    if (generation === null) return;
    const first = choice.tokens === 1;
    const text = JSON.stringify(
      first && this.#shown.echo ? this.#exchange.context.tokenizer.decode(choice.prompt) + choice.piece : choice.piece,
    );
    const finish = choice.ended ? `"${choice.finishReason}"` : "null";
    const stop = choice.ended ? JSON.stringify(choice.stopReason) : "null";
    const promptIds = first && this.#shown.ids ? JSON.stringify(Array.from(choice.prompt)) : "null";
    const ids = this.#shown.ids ? `[${choice.tokenId}]` : "null";
    const usage = this.#stream.continuousUsage
      ? `,"usage":${JSON.stringify(runningUsage(generation, "completion"))}`
      : "";
    this.#exchange.data(
      `${this.#head}{"index":${choice.index},"text":${text},"logprobs":null,"finish_reason":${finish},"stop_reason":${stop},"prompt_token_ids":${promptIds},"token_ids":${ids}}]${usage}}`,
    );
  }

  done(): void {
    const generation = this.#generation;
    if (generation === null) return;
    if (this.#stream.includeUsage) {
      const usage = JSON.stringify(streamUsage(generation, "completion"));
      this.#exchange.data(
        `${this.#head}],"usage":${usage},"system_fingerprint":"${this.#exchange.context.fingerprint}"}`,
      );
    }
    this.#exchange.data("[DONE]");
    this.#exchange.response.end();
  }
}
