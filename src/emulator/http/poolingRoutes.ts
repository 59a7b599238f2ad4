import { SeededRandom } from "#src/determinism/random.ts";
import type { Generation } from "../generation.ts";
import { textSeed, tokensSeed } from "../tokens/blockHashes.ts";
import { readPrompts } from "./completionsRoute.ts";
import type { Exchange } from "./exchange.ts";
import { isObject, missingField, numberField, stringField, type JsonBody } from "./jsonBody.ts";
import { readPooling } from "./samplingFields.ts";
import { badRequest } from "./vllmError.ts";

const DEFAULT_DIMENSIONS = 64;

/** `POST /v1/embeddings`: unit vectors drawn from the text, so that equal texts have equal vectors. */
export function answerEmbeddings(exchange: Exchange): void {
  const body = exchange.json();
  const prompts = readPrompts(exchange.context.tokenizer, body, "input");
  const dimensions = numberField(body, "dimensions") ?? DEFAULT_DIMENSIONS;
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > 16_384)
    throw badRequest(`dimensions must be from 1 to 16384, got ${dimensions}.`, "dimensions");
  const base64 = stringField(body, "encoding_format") === "base64";
  pool(exchange, body, prompts, (model, generation) => ({
    id: `embd-${exchange.requestId}`,
    object: "list",
    created: exchange.createdSeconds,
    model,
    data: prompts.map((prompt, index) => {
      const vector = unitVector(tokensSeed(prompt, textSeed(model)), dimensions);
      const embedding = base64 ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector);
      return { index, object: "embedding", embedding };
    }),
    usage: poolingUsage(generation),
  }));
}

/** `POST /v1/score`: one text against one or many, or pairs. */
export function answerScore(exchange: Exchange): void {
  const body = exchange.json();
  const first = texts(body, "text_1" in body ? "text_1" : "queries");
  const second = texts(body, "text_2" in body ? "text_2" : "documents");
  if (first.length !== 1 && first.length !== second.length)
    throw badRequest("Input lengths must be either 1:1, 1:N or N:N");
  const pairs = second.map((text, at) => `${first.length === 1 ? first[0] : first[at]}\n${text}`);
  pool(
    exchange,
    body,
    pairs.map((pair) => exchange.context.tokenizer.encode(pair)),
    (model, generation) => ({
      id: `score-${exchange.requestId}`,
      object: "list",
      created: exchange.createdSeconds,
      model,
      data: pairs.map((pair, index) => ({ index, object: "score", score: score(pair) })),
      usage: poolingUsage(generation),
    }),
  );
}

/** `POST /v1/rerank`: documents in the order of their scores. */
export function answerRerank(exchange: Exchange): void {
  const body = exchange.json();
  const query = stringField(body, "query");
  if (query === null) throw missingField("query", body);
  const documents = texts(body, "documents");
  const top = numberField(body, "top_n") ?? documents.length;
  pool(
    exchange,
    body,
    documents.map((document) => exchange.context.tokenizer.encode(`${query}\n${document}`)),
    (model, generation) => ({
      id: `rerank-${exchange.requestId}`,
      model,
      usage: { prompt_tokens: generation.promptTokens, total_tokens: generation.promptTokens },
      results: documents
        .map((text, index) => ({ index, document: { text }, relevance_score: score(`${query}\n${text}`) }))
        .sort((a, b) => b.relevance_score - a.relevance_score)
        .slice(0, top > 0 ? top : undefined),
    }),
  );
}

function pool(
  exchange: Exchange,
  body: JsonBody,
  prompts: readonly Uint32Array[],
  result: (model: string, generation: Generation) => unknown,
): void {
  const adapter = exchange.adapterOf(body);
  const model = adapter ?? exchange.context.options.model;
  const generation = exchange.generate({ ...readPooling(body, adapter), prompts }, model, {
    token: () => {},
    done: () => exchange.answerJson(result(model, generation)),
  });
}

function poolingUsage(generation: Generation): unknown {
  const { promptTokens } = generation;
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens,
    completion_tokens: 0,
    prompt_tokens_details: null,
  };
}

function texts(body: JsonBody, field: string): string[] {
  const value = body[field];
  if (value === undefined || value === null) throw missingField(field, body);
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) throw badRequest(`${field} must not be empty.`, field);
  return list.map((entry: unknown) => {
    if (typeof entry === "string") return entry;
    if (isObject(entry) && typeof entry["text"] === "string") return entry["text"];
    throw badRequest(`${field} must be text or a list of texts.`, field);
  });
}

function score(text: string): number {
  return textSeed(text) / 2 ** 32;
}

function unitVector(seed: number, dimensions: number): Float32Array<ArrayBuffer> {
  const random = new SeededRandom(seed);
  const vector = Float32Array.from({ length: dimensions }, () => random.next() * 2 - 1);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}
