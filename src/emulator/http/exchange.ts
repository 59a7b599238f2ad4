import type { IncomingMessage, ServerResponse } from "node:http";
import type { EngineContext } from "../engineContext.ts";
import type { RequestFaults } from "../faults.ts";
import { Generation, type GenerationListener, type GenerationRequest } from "../generation.ts";
import type { Rank } from "../incarnation.ts";
import type { ChatMessage } from "../tokens/chatTemplate.ts";
import { parseJsonBody, stringField, type JsonBody } from "./jsonBody.ts";
import { badRequest, unknownModel, VllmError } from "./vllmError.ts";

/** One request that an engine answers, with what routes need to do so. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly context: EngineContext;
  /** As sent in `X-Request-Id`, else made up. */
  readonly requestId: string;
  readonly createdSeconds = Math.floor(Date.now() / 1000);
  readonly #faults: RequestFaults;

  constructor(
    message: {
      request: IncomingMessage;
      response: ServerResponse;
      path: string;
      query: URLSearchParams;
      body: Buffer;
      requestId: string;
    },
    context: EngineContext,
    faults: RequestFaults,
  ) {
    this.request = message.request;
    this.response = message.response;
    this.path = message.path;
    this.query = message.query;
    this.body = message.body;
    this.requestId = message.requestId;
    this.context = context;
    this.#faults = faults;
  }

  json(): JsonBody {
    return parseJsonBody(this.request.headers["content-type"], this.body);
  }

  answerJson(value: unknown, status = 200): void {
    this.answer(status, "application/json", JSON.stringify(value));
  }

  answer(status: number, contentType: string | null, body: string): void {
    const headers: Record<string, string | number> = { "content-length": Buffer.byteLength(body) };
    if (contentType !== null) headers["content-type"] = contentType;
    this.response.writeHead(status, headers);
    this.response.end(body);
  }

  /** Sends the headers of a stream at once, as vLLM does: long before the first token. */
  startStream(): void {
    this.response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    this.response.flushHeaders();
  }

  data(json: string): void {
    this.response.write(`data: ${json}\n\n`);
  }

  event(name: string, value: unknown): void {
    this.response.write(`event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
  }

  /** The prompt that a chat is. Throws VllmError where the model takes none. */
  chatPrompt(body: JsonBody, messages: readonly ChatMessage[]): Uint32Array {
    try {
      return this.context.tokenizer.chat({
        messages,
        tools: body["tools"],
        opensAnswer: body["add_generation_prompt"] !== false,
        templateArguments: body["chat_template_kwargs"],
      });
    } catch (caught) {
      throw badRequest(caught instanceof Error ? caught.message : String(caught));
    }
  }

  /** The adapter that a `model` means; null for the base model itself. A request without a model means the base. */
  adapterOf(body: JsonBody): string | null {
    const model = stringField(body, "model");
    const { options, incarnation } = this.context;
    if (model === null || model === options.model) return null;
    if (incarnation.adapters.has(model)) return model;
    throw unknownModel(model, options.model);
  }

  /**
   * Runs the model. The generation ends with its last token, with the client's leaving, or with an emulated death of
   * the engine; each is logged once.
   */
  generate(request: GenerationRequest, model: string, listener: GenerationListener): Generation {
    const { options, incarnation } = this.context;
    for (const prompt of request.prompts) checkLength(prompt.length, request.maxTokens, options.maxModelTokens);
    if (options.maxQueued !== null && incarnation.waiting >= options.maxQueued && !incarnation.hasFreeSlot) {
      incarnation.rejected++;
      throw new VllmError(503, "The engine's queue is full.", "ServiceUnavailableError", null, 1);
    }
    const faulty = this.#withFaults(listener, () => {
      generation.abort();
      log("died");
    });
    const generation: Generation = new Generation(this.#rank().loop, this.context, request, {
      token: (choice) => faulty.token(choice),
      done: () => {
        for (const { finishReason } of generation.choices) incarnation.finishedByReason[finishReason]++;
        faulty.done();
      },
    });
    let logged = false;
    const log = (outcome: "finished" | "aborted" | "died"): void => {
      if (logged) return;
      logged = true;
      this.context.log.add({
        requestId: this.requestId,
        path: this.path,
        model,
        outcome,
        phase: generation.phase,
        promptTokens: generation.promptTokens,
        cachedTokens: generation.cachedTokens,
        outputTokens: generation.outputTokens,
        times: generation.times,
      });
    };
    this.response.once("close", () => {
      if (!this.response.writableFinished) generation.abort();
      log(this.response.writableFinished ? "finished" : incarnation.stopped ? "died" : "aborted");
    });
    return generation;
  }

  /** Cuts the connection or falls silent when enough tokens were sent. */
  #withFaults(listener: GenerationListener, die: () => void): GenerationListener {
    const { dieAfterTokens, stallAfterTokens } = this.#faults;
    if (dieAfterTokens === null && stallAfterTokens === null) return listener;
    let sent = 0;
    const passes = (): boolean => {
      if (stallAfterTokens !== null && sent >= stallAfterTokens) return false;
      if (dieAfterTokens === null || sent < dieAfterTokens) return true;
      die();
      // What was sent before still leaves: several tokens may have come in this turn, and node:http holds them till its end.
      process.nextTick(() => this.response.socket?.destroySoon());
      return false;
    };
    return {
      token: (choice) => {
        if (!passes()) return;
        sent++;
        listener.token(choice);
      },
      done: () => {
        if (passes()) listener.done();
      },
    };
  }

  #rank(): Rank {
    const { incarnation } = this.context;
    const header = this.request.headers["x-data-parallel-rank"];
    // What is no number is ignored, as vLLM does.
    if (typeof header !== "string" || !/^-?\d+$/.test(header)) return incarnation.leastLoadedRank();
    const rank = incarnation.ranks[Number(header)];
    if (rank !== undefined) return rank;
    throw badRequest(`data_parallel_rank ${header} is out of range [0, ${incarnation.ranks.length}).`);
  }
}

function checkLength(promptTokens: number, maxTokens: number | null, limit: number): void {
  if (maxTokens !== null && maxTokens > limit)
    throw badRequest(
      `max_tokens=${maxTokens} cannot be greater than max_model_len=${limit}. Please request fewer output tokens. (parameter=max_tokens, value=${maxTokens})`,
      "max_tokens",
    );
  if (promptTokens > limit)
    throw badRequest(
      `This model's maximum context length is ${limit} tokens. However, your prompt contains ${promptTokens} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=${promptTokens})`,
      "input_tokens",
    );
  if (promptTokens + (maxTokens ?? 0) > limit)
    throw badRequest(
      `This model's maximum context length is ${limit} tokens. However, you requested ${maxTokens} output tokens and your prompt contains ${promptTokens} input tokens. Please request less of either. (parameter=input_tokens, value=${promptTokens})`,
      "input_tokens",
    );
}
