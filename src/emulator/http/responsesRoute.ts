import type { Choice, Generation } from "../generation.ts";
import type { ChatMessage } from "../tokens/chatTemplate.ts";
import type { Exchange } from "./exchange.ts";
import { isObject, isTrue, missingField, numberField, stringField, type JsonBody } from "./jsonBody.ts";
import { readSampling } from "./samplingFields.ts";
import { badRequest } from "./vllmError.ts";

/** `POST /v1/responses` */
export function answerResponse(exchange: Exchange): void {
  const body = exchange.json();
  const prompt = exchange.chatPrompt(body, readInput(body));
  const adapter = exchange.adapterOf(body);
  const model = adapter ?? exchange.context.options.model;
  const maxTokens = numberField(body, "max_output_tokens");
  const request = { ...readSampling(body, { maxTokens, adapter }), prompts: [prompt] };
  if (isTrue(body["stream"])) {
    const writer = new ResponseStream(exchange, model, body);
    writer.start(exchange.generate(request, model, writer));
    return;
  }
  const generation = exchange.generate(request, model, {
    token: () => {},
    done: () => exchange.answerJson(finishedResponse(exchange, generation, model, body)),
  });
}

function readInput(body: JsonBody): ChatMessage[] {
  const { input } = body;
  if (input === undefined || input === null) throw missingField("input", body);
  const instructions = stringField(body, "instructions");
  const messages: ChatMessage[] = instructions === null ? [] : [{ role: "system", content: instructions }];
  if (typeof input === "string") return [...messages, { role: "user", content: input }];
  if (!Array.isArray(input) || input.length === 0) throw badRequest("input must be text or a list of items.", "input");
  for (const item of input) {
    if (!isObject(item)) throw badRequest("input must be text or a list of items.", "input");
    const role = typeof item["role"] === "string" ? item["role"] : "tool";
    messages.push("content" in item ? { role, content: item["content"] } : { role, content: null, calls: item });
  }
  return messages;
}

/** The response object without what only its end tells. */
function openResponse(exchange: Exchange, model: string, body: JsonBody): Record<string, unknown> {
  return {
    id: `resp_${exchange.requestId}`,
    created_at: exchange.createdSeconds,
    incomplete_details: null,
    instructions: body["instructions"] ?? null,
    metadata: body["metadata"] ?? null,
    model,
    object: "response",
    output: [],
    parallel_tool_calls: true,
    temperature: body["temperature"] ?? 1,
    tool_choice: "auto",
    tools: body["tools"] ?? [],
    top_p: body["top_p"] ?? 1,
    background: false,
    max_output_tokens: body["max_output_tokens"] ?? null,
    max_tool_calls: null,
    previous_response_id: null,
    prompt: null,
    reasoning: null,
    service_tier: "auto",
    status: "in_progress",
    text: null,
    top_logprobs: null,
    truncation: "disabled",
    usage: null,
    user: body["user"] ?? null,
  };
}

function finishedResponse(exchange: Exchange, generation: Generation, model: string, body: JsonBody): unknown {
  const choice = generation.choices[0];
  const cut = choice?.finishReason === "length";
  const { promptTokens, outputTokens, cachedTokens } = generation;
  return {
    ...openResponse(exchange, model, body),
    incomplete_details: cut ? { reason: "max_output_tokens" } : null,
    output: [messageItem(exchange, "completed", [textPart(choice?.text ?? "")])],
    status: cut ? "incomplete" : "completed",
    usage: {
      input_tokens: promptTokens,
      input_tokens_details: { cached_tokens: cachedTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: promptTokens + outputTokens,
    },
  };
}

function messageItem(exchange: Exchange, status: string, content: readonly unknown[]): Record<string, unknown> {
  return { id: `msg_${exchange.requestId}`, content, role: "assistant", status, type: "message" };
}

function textPart(text: string): Record<string, unknown> {
  return { annotations: [], text, type: "output_text", logprobs: [] };
}

/** Writes the events of OpenAI's Responses API, numbered; the last repeats the whole response. */
class ResponseStream {
  readonly #exchange: Exchange;
  readonly #model: string;
  readonly #body: JsonBody;
  readonly #place: Readonly<Record<string, unknown>>;
  #generation: Generation | null = null;
  #number = 0;

  constructor(exchange: Exchange, model: string, body: JsonBody) {
    this.#exchange = exchange;
    this.#model = model;
    this.#body = body;
    this.#place = { item_id: `msg_${exchange.requestId}`, output_index: 0, content_index: 0 };
  }

  start(generation: Generation): void {
    this.#generation = generation;
    this.#exchange.startStream();
    const response = openResponse(this.#exchange, this.#model, this.#body);
    this.#send("response.created", { response });
    this.#send("response.in_progress", { response });
  }

  token(choice: Choice): void {
    if (choice.tokens === 1) {
      this.#send("response.output_item.added", {
        output_index: 0,
        item: messageItem(this.#exchange, "in_progress", []),
      });
      this.#send("response.content_part.added", { ...this.#place, part: textPart("") });
    }
    this.#send("response.output_text.delta", { ...this.#place, delta: choice.piece, logprobs: [] });
  }

  done(): void {
    const generation = this.#generation;
    if (generation === null) return;
    const part = textPart(generation.choices[0]?.text ?? "");
    this.#send("response.output_text.done", { ...this.#place, text: part["text"], logprobs: [] });
    this.#send("response.content_part.done", { ...this.#place, part });
    this.#send("response.output_item.done", {
      output_index: 0,
      item: messageItem(this.#exchange, "completed", [part]),
    });
    const response = finishedResponse(this.#exchange, generation, this.#model, this.#body);
    this.#send("response.completed", { response });
    this.#exchange.response.end();
  }

  #send(type: string, fields: Record<string, unknown>): void {
    this.#exchange.event(type, { type, sequence_number: this.#number++, ...fields });
  }
}
