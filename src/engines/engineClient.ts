import { getCACertificates } from "node:tls";
import { Agent, errors, request } from "undici";
import { RouterError, type ErrorCode } from "../errors/routerError.ts";
import { engineFailed } from "./answers.ts";
import type { AskEngine, EngineAnswer } from "./engineAdapter.ts";

export interface EngineTls {
  /** PEM of an authority to trust beside the usual ones. */
  readonly ca?: string | null;
  readonly rejectUnauthorized?: boolean;
}

export interface EngineTimeouts {
  readonly connectMs: number;
  /** From the question to the last byte of its answer. */
  readonly totalMs: number;
}

export interface EngineClientOptions {
  readonly url: string;
  /** The engine's own key; a client's key never comes here. */
  readonly apiKey: string | null;
  readonly tls?: EngineTls;
  readonly timeouts?: EngineTimeouts;
  readonly maxBytes?: number;
}

export interface EngineClient {
  readonly ask: AskEngine;
  close(): Promise<void>;
}

const DEFAULT_ENGINE_TIMEOUTS: EngineTimeouts = { connectMs: 2000, totalMs: 5000 };

/** Seventy times a usual scrape; room for thousands of ranks or model cards, none for an endless answer. */
const DEFAULT_MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/**
 * Questions to one engine over connections of their own, so that they neither wait behind traffic nor take its sockets.
 * Sockets idle less long than the 5 s after which uvicorn closes them.
 */
export function createAskEngine(options: EngineClientOptions): EngineClient {
  const timeouts = options.timeouts ?? DEFAULT_ENGINE_TIMEOUTS;
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_ANSWER_BYTES;
  const { ca, rejectUnauthorized = true } = options.tls ?? {};
  const agent = new Agent({
    connections: 4,
    pipelining: 1,
    keepAliveTimeout: 4000,
    keepAliveMaxTimeout: 4000,
    connect: { timeout: timeouts.connectMs, rejectUnauthorized, ...(ca ? { ca: [...getCACertificates(), ca] } : {}) },
  });
  const headers: Record<string, string> = { accept: "*/*" };
  if (options.apiKey !== null) headers["authorization"] = `Bearer ${options.apiKey}`;

  async function askOnce(path: string, asked: NonNullable<Parameters<AskEngine>[1]>): Promise<EngineAnswer> {
    const limit = AbortSignal.timeout(asked.timeoutMs ?? timeouts.totalMs);
    const answer = await request(options.url + path, {
      dispatcher: agent,
      method: asked.method ?? "GET",
      headers: {
        ...headers,
        ...(asked.body === undefined ? {} : { "content-type": "application/json" }),
        ...asked.headers,
      },
      signal: asked.signal === undefined ? limit : AbortSignal.any([limit, asked.signal]),
      ...(asked.body === undefined ? {} : { body: asked.body }),
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw engineFailed(`The engine's answer to ${path} is larger than ${maxBytes} bytes.`);
      chunks.push(chunk);
    }
    return {
      status: answer.statusCode,
      headers: flatHeaders(answer.headers),
      body: Buffer.concat(chunks, bytes).toString("utf8"),
    };
  }

  return {
    async ask(path, asked = {}) {
      try {
        try {
          return await askOnce(path, asked);
        } catch (caught) {
          // The engine closed an idle socket just as it was taken up again; a question without effects may be repeated.
          if ((asked.method ?? "GET") !== "GET" || !isStaleSocket(caught)) throw caught;
          return await askOnce(path, asked);
        }
      } catch (caught) {
        throw toEngineError(caught, options.url + path);
      }
    },
    close: () => agent.destroy(),
  };
}

function flatHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
  );
}

function codeOf(caught: unknown): string {
  return typeof caught === "object" && caught !== null && "code" in caught ? String(caught.code) : "";
}

function isStaleSocket(caught: unknown): boolean {
  return caught instanceof errors.SocketError || codeOf(caught) === "ECONNRESET" || codeOf(caught) === "EPIPE";
}

/** Nobody there, or somebody who does not answer: the two are different news (a busy engine is silent, not dead). */
function toEngineError(caught: unknown, url: string): RouterError {
  if (caught instanceof RouterError) return caught;
  const name = caught instanceof Error ? caught.name : "";
  const stalled =
    name === "TimeoutError" ||
    name === "AbortError" ||
    name.endsWith("HeadersTimeoutError") ||
    name.endsWith("BodyTimeoutError");
  const connect = caught instanceof errors.ConnectTimeoutError;
  const code: ErrorCode = connect ? "connect_timeout" : stalled ? "engine_stalled" : "engine_unreachable";
  const what = connect ? "could not be connected to in time" : stalled ? "did not answer in time" : "cannot be reached";
  const reason = codeOf(caught) === "" ? "" : ` (${codeOf(caught)})`;
  return new RouterError(code, `${url} ${what}${reason}.`, {
    fault: "engine",
    httpStatus: stalled || connect ? 504 : 502,
    retryable: true,
    cause: caught,
  });
}
