import type { Choice, Generation } from "../generation.ts";
import type { ChatMessage } from "../tokens/chatTemplate.ts";
import type { Exchange } from "./exchange.ts";
import { isObject, isTrue, missingField, numberField, type JsonBody } from "./jsonBody.ts";
import { readSampling, readStream, type StreamFields } from "./samplingFields.ts";
import { runningUsage, streamUsage, unaryUsage } from "./usage.ts";
import { badRequest, invalidBody } from "./vllmError.ts";

/** `POST /v1/chat/completions` */
export function answerChat(exchange: Exchange): void {
  const body = exchange.json();
  const prompt = exchange.chatPrompt(body, readMessages(body));
  const adapter = exchange.adapterOf(body);
  const model = adapter ?? exchange.context.options.model;
  const maxTokens = numberField(body, "max_completion_tokens") ?? numberField(body, "max_tokens");
  const request = { ...readSampling(body, { maxTokens, adapter }), prompts: [prompt] };
  const shown = isTrue(body["return_token_ids"]) ? Array.from(prompt) : null;
  const stream = readStream(body);
  if (stream.stream) {
    const writer = new ChatStream(exchange, model, stream, shown);
    writer.start(exchange.generate(request, model, writer));
    return;
  }
  const generation = exchange.generate(request, model, {
    token: () => {},
    done: () => exchange.answerJson(chatCompletion(exchange, generation, model, shown)),
  });
}

/** The messages of a chat body. Throws VllmError where there are none. */
export function readMessages(body: JsonBody): ChatMessage[] {
  const { messages } = body;
  if (messages === undefined) throw missingField("messages", body);
  if (!Array.isArray(messages))
    throw invalidBody(
      "{'type': 'list_type', 'loc': 'body.messages', 'msg': 'Input should be a valid list'}",
      "body.messages",
    );
  if (messages.length === 0)
    throw badRequest("Cannot apply chat template to an empty conversation. Provide at least one message.");
  return messages.map((message: unknown) => {
    if (!isObject(message) || typeof message["role"] !== "string")
      throw invalidBody("{'type': 'missing', 'loc': 'body.messages.role', 'msg': 'Field required'}", "body.messages");
    return { role: message["role"], content: message["content"], calls: message["tool_calls"] };
  });
}

function chatCompletion(exchange: Exchange, generation: Generation, model: string, shown: number[] | null): unknown {
  return {
    id: `chatcmpl-${exchange.requestId}`,
    object: "chat.completion",
    created: exchange.createdSeconds,
    model,
    choices: generation.choices.map((choice) => ({
      index: choice.index,
      message: {
        role: "assistant",
        content: choice.text,
        refusal: null,
        annotations: null,
        audio: null,
        function_call: null,
        reasoning: null,
      },
      logprobs: null,
      finish_reason: choice.finishReason,
      stop_reason: choice.stopReason,
      token_ids: shown === null ? null : choice.tokenIds,
      routed_experts: null,
    })),
    service_tier: null,
    system_fingerprint: exchange.context.fingerprint,
    usage: unaryUsage(generation, 0),
    prompt_logprobs: null,
    prompt_token_ids: shown,
    prompt_text: null,
    kv_transfer_params: null,
    ec_transfer_params: null,
    metrics: null,
  };
}

/** Writes vLLM's stream: a role chunk for each choice, a chunk for each token, usage if wanted, `[DONE]`. */
class ChatStream {
  readonly #exchange: Exchange;
  readonly #stream: StreamFields;
  readonly #shown: number[] | null;
  readonly #head: string;
  #generation: Generation | null = null;
  #roleSent = false;

  constructor(exchange: Exchange, model: string, stream: StreamFields, shown: number[] | null) {
    this.#exchange = exchange;
    this.#stream = stream;
    this.#shown = shown;
    const id = JSON.stringify(`chatcmpl-${exchange.requestId}`);
    this.#head = `{"id":${id},"object":"chat.completion.chunk","created":${exchange.createdSeconds},"model":${JSON.stringify(model)},"choices":[`;
  }

  start(generation: Generation): void {
    this.#generation = generation;
    this.#exchange.startStream();
  }

  token(choice: Choice): void {
    const generation = this.#generation;
    if (generation === null) return;
    if (!this.#roleSent) this.#sendRoles(generation);
    const ids = this.#shown === null ? "null" : `[${choice.tokenId}]`;
    const end = choice.ended
      ? `"finish_reason":"${choice.finishReason}","stop_reason":${JSON.stringify(choice.stopReason)}`
      : `"finish_reason":null`;
    const fingerprint =
      choice.ended && !this.#stream.includeUsage && generation.choices.every(({ ended }) => ended)
        ? `,"system_fingerprint":"${this.#exchange.context.fingerprint}"`
        : "";
    const content = JSON.stringify(choice.piece);
    this.#exchange.data(
      `${this.#head}{"index":${choice.index},"delta":{"content":${content}},"logprobs":null,${end},"token_ids":${ids}}]${this.#usageSoFar(generation)}${fingerprint}}`,
    );
  }

  done(): void {
    const generation = this.#generation;
    if (generation === null) return;
    if (this.#stream.includeUsage) {
      const usage = JSON.stringify(streamUsage(generation, "chat"));
      this.#exchange.data(
        `${this.#head}],"usage":${usage},"system_fingerprint":"${this.#exchange.context.fingerprint}"}`,
      );
    }
    this.#exchange.data("[DONE]");
    this.#exchange.response.end();
  }

  #sendRoles(generation: Generation): void {
    this.#roleSent = true;
    const prompt = JSON.stringify(this.#shown);
    const usage = this.#stream.continuousUsage
      ? `,"usage":{"prompt_tokens":${generation.promptTokens},"total_tokens":${generation.promptTokens},"completion_tokens":0,"completion_tokens_details":null}`
      : "";
    for (const { index } of generation.choices) {
      this.#exchange.data(
        `${this.#head}{"index":${index},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]${usage},"prompt_token_ids":${prompt},"prompt_text":null}`,
      );
    }
  }

  #usageSoFar(generation: Generation): string {
    return this.#stream.continuousUsage ? `,"usage":${JSON.stringify(runningUsage(generation, "chat"))}` : "";
  }
}
