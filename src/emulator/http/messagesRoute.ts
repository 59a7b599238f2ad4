import type { Choice, Generation } from "../generation.ts";
import { readMessages } from "./chatRoute.ts";
import type { Exchange } from "./exchange.ts";
import { isTrue, missingField, numberField, stringList, type JsonBody } from "./jsonBody.ts";
import { readSampling } from "./samplingFields.ts";

/** `POST /v1/messages`: Anthropic's API. */
export function answerMessages(exchange: Exchange): void {
  const body = exchange.json();
  const prompt = promptOf(exchange, body);
  const adapter = exchange.adapterOf(body);
  const model = adapter ?? exchange.context.options.model;
  const maxTokens = numberField(body, "max_tokens");
  if (maxTokens === null) throw missingField("max_tokens", body);
  const request = {
    ...readSampling(body, { maxTokens, adapter }),
    prompts: [prompt],
    stop: stringList(body, "stop_sequences"),
  };
  if (isTrue(body["stream"])) {
    const writer = new MessageStream(exchange, model);
    writer.start(exchange.generate(request, model, writer));
    return;
  }
  const generation = exchange.generate(request, model, {
    token: () => {},
    done: () => exchange.answerJson(message(exchange, generation, model)),
  });
}

/** `POST /v1/messages/count_tokens` */
export function answerCountTokens(exchange: Exchange): void {
  const body = exchange.json();
  exchange.adapterOf(body);
  exchange.answerJson({ input_tokens: promptOf(exchange, body).length });
}

function promptOf(exchange: Exchange, body: JsonBody): Uint32Array {
  const messages = readMessages(body);
  const system = body["system"];
  return exchange.chatPrompt(
    body,
    system === undefined || system === null ? messages : [{ role: "system", content: system }, ...messages],
  );
}

function message(exchange: Exchange, generation: Generation, model: string): unknown {
  const choice = generation.choices[0];
  return {
    id: `chatcmpl-${exchange.requestId}`,
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: choice?.text ?? "" }],
    model,
    stop_reason: choice === undefined ? null : stopReason(choice),
    ...(choice !== undefined && choice.stopReason !== null ? { stop_sequence: choice.stopReason } : {}),
    usage: usage(generation),
  };
}

function stopReason(choice: Choice): string {
  if (choice.finishReason === "length") return "max_tokens";
  return choice.stopReason === null ? "end_turn" : "stop_sequence";
}

/** Cached tokens are counted apart from `input_tokens`, as Anthropic does. */
function usage(generation: Generation): Record<string, number> {
  return {
    input_tokens: generation.promptTokens - generation.cachedTokens,
    output_tokens: generation.outputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: generation.cachedTokens,
  };
}

/** Writes Anthropic's events: the message begins with the first token, each token is a text delta. */
class MessageStream {
  readonly #exchange: Exchange;
  readonly #model: string;
  #generation: Generation | null = null;

  constructor(exchange: Exchange, model: string) {
    this.#exchange = exchange;
    this.#model = model;
  }

  start(generation: Generation): void {
    this.#generation = generation;
    this.#exchange.startStream();
  }

  token(choice: Choice): void {
    if (choice.tokens === 1) this.#begin();
    this.#send("content_block_delta", { index: 0, delta: { type: "text_delta", text: choice.piece } });
  }

  done(): void {
    const generation = this.#generation;
    const choice = generation?.choices[0];
    if (generation === null || choice === undefined) return;
    this.#send("content_block_stop", { index: 0 });
    this.#send("message_delta", {
      delta: { stop_reason: stopReason(choice), stop_sequence: choice.stopReason },
      usage: usage(generation),
    });
    this.#send("message_stop", {});
    this.#exchange.response.end();
  }

  #begin(): void {
    const generation = this.#generation;
    if (generation === null) return;
    this.#send("message_start", {
      message: {
        id: `chatcmpl-${this.#exchange.requestId}`,
        type: "message",
        role: "assistant",
        content: [],
        model: this.#model,
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage(generation), output_tokens: 0 },
      },
    });
    this.#send("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  }

  #send(type: string, fields: Record<string, unknown>): void {
    this.#exchange.event(type, { type, ...fields });
  }
}
