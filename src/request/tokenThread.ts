import { parentPort } from "node:worker_threads";
import { loadTokenizer, type TokenizerSource } from "./tokenizerSource.ts";
import type { TokenAnswer, TokenQuestion } from "./tokenTask.ts";
import type { ModelTokenizer } from "./tokens/modelTokenizer.ts";
import { promptTokens } from "./tokens/promptTokens.ts";
import { chainRoot, tokenChain } from "./tokens/tokenChain.ts";
import { TokenFallback } from "./tokens/tokenFallback.ts";

/* A thread of TokenIdentities: holds the tokenizers, which remember the pieces of prompts that they have seen. */

if (parentPort === null) throw new Error("tokenThread.ts runs as a worker thread");
const port = parentPort;

let tokenizers: ReadonlyMap<string, ModelTokenizer> = new Map();
let loaded: ReadonlyMap<string, ModelTokenizer> = new Map();
let working: Promise<void> = Promise.resolve();

port.on("message", (question: TokenQuestion) => {
  working = working.then(async () => {
    const answer = question.kind === "load" ? await load(question.sources) : identify(question);
    port.postMessage(answer, answer.kind === "chain" ? [answer.hashes.buffer as ArrayBuffer] : []);
  });
});

/** Models with equal sources share a tokenizer, and one that stays keeps what it remembers. */
async function load(sources: ReadonlyMap<string, TokenizerSource>): Promise<TokenAnswer> {
  const bySource = new Map<string, ModelTokenizer>();
  const byModel = new Map<string, ModelTokenizer>();
  const problems = new Map<string, string>();
  for (const [model, source] of sources) {
    const key = JSON.stringify(source);
    try {
      const tokenizer = bySource.get(key) ?? loaded.get(key) ?? (await loadTokenizer(source));
      bySource.set(key, tokenizer);
      byModel.set(model, tokenizer);
    } catch (caught) {
      problems.set(model, caught instanceof Error ? caught.message : String(caught));
    }
  }
  if (problems.size === 0) {
    loaded = bySource;
    tokenizers = byModel;
  }
  return { kind: "loaded", problems };
}

function identify(question: Extract<TokenQuestion, { kind: "identify" }>): TokenAnswer {
  const { model, api, body, options } = question;
  const tokenizer = tokenizers.get(model);
  if (tokenizer === undefined) return { kind: "fallback", reason: "tokenizer_failed" };
  try {
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
    const { ids, tokens } = promptTokens(api, text, tokenizer, new Date());
    const root = chainRoot(options.adapter, options.salt, options.blockTokens);
    return { kind: "chain", hashes: tokenChain(root, ids, options.blockTokens), promptTokens: tokens };
  } catch (caught) {
    return { kind: "fallback", reason: caught instanceof TokenFallback ? caught.reason : "tokenizer_failed" };
  }
}
