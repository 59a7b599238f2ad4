// An engine at the level of bytes: passes for vLLM when it is probed, and does with every other request what a script says.
import type { Socket } from "node:net";
import { MODEL } from "../gatewaySetup.ts";
import { chunk, json, LAST_CHUNK, ScriptedEngine, STREAM_HEAD } from "../dispatchRig.ts";
import type { Received } from "../dispatchRig.ts";

/** What a worker says of itself when it is asked; a test may change it while the router runs. */
export interface Probed {
  health: "ok" | "hangs" | "unready";
  /** How often the health route was asked. */
  healthAsked: number;
  /** Answers none of the router's own questions. */
  silent: boolean;
  running: number;
  waiting: number;
  /** Share of the KV memory in use. */
  kvUsage: number;
  /** When the process started; a later time is another process. */
  startedAtSeconds: number;
  adapters: readonly string[];
}

export class Worker {
  /** Requests of clients: whatever is no GET. */
  readonly requests: Received[] = [];
  readonly probed: Probed = {
    health: "ok",
    healthAsked: 0,
    silent: false,
    running: 0,
    waiting: 0,
    kvUsage: 0,
    startedAtSeconds: 1_700_000_000,
    adapters: [],
  };
  readonly #engine: ScriptedEngine;

  private constructor(engine: ScriptedEngine) {
    this.#engine = engine;
  }

  static async start(script: (request: Received) => void): Promise<Worker> {
    const worker: Worker = new Worker(
      await ScriptedEngine.start((request) => {
        const path = /^GET (\S+)/.exec(request.head)?.[1];
        if (path !== undefined) {
          worker.#answer(path, request.socket);
          return;
        }
        worker.requests.push(request);
        script(request);
      }),
    );
    return worker;
  }

  get url(): string {
    return this.#engine.url;
  }

  /** As the router calls it. */
  get id(): string {
    return new URL(this.url).host;
  }

  get sockets(): ReadonlySet<Socket> {
    return this.#engine.sockets;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine.stop();
  }

  #answer(path: string, socket: Socket): void {
    const { health, silent } = this.probed;
    if (path === "/health") this.probed.healthAsked++;
    if (!silent && !(path === "/health" && health === "hangs")) socket.write(this.#probe(path));
  }

  #probe(path: string): string {
    const { health, adapters } = this.probed;
    const model = (id: string, parent: string | null) => ({ id, object: "model", owned_by: "vllm", parent });
    switch (path) {
      case "/health":
        return json({}, health === "unready" ? "503 Service Unavailable" : "200 OK");
      case "/version":
        return json({ version: "0.32.0" });
      case "/v1/models":
        return json({ object: "list", data: [model(MODEL, null), ...adapters.map((name) => model(name, MODEL))] });
      case "/metrics":
        return text(this.#metrics());
      default:
        return json({ detail: "Not Found" }, "404 Not Found");
    }
  }

  #metrics(): string {
    const { running, waiting, kvUsage, startedAtSeconds } = this.probed;
    const labels = `{engine="0",model_name="${MODEL}"}`;
    return (
      `vllm:num_requests_running${labels} ${running}\nvllm:num_requests_waiting${labels} ${waiting}\n` +
      `vllm:kv_cache_usage_perc${labels} ${kvUsage}\nprocess_start_time_seconds ${startedAtSeconds}\n`
    );
  }
}

function text(body: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

export interface UsageNumbers {
  readonly prompt: number;
  readonly cached?: number;
  readonly output: number;
}

/** A chat's answer in one piece. */
export function answer({ prompt, cached, output }: UsageNumbers = { prompt: 10, output: 1 }): string {
  return json({
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "word" }, finish_reason: "stop" }],
    usage: {
      prompt_tokens: prompt,
      completion_tokens: output,
      ...(cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: cached } }),
    },
  });
}

export function token(content = "word"): string {
  return `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;
}

export const DONE = "data: [DONE]\n\n";

/** A whole streamed answer of so many tokens. */
export function stream(tokens: number): string {
  const events = Array.from({ length: tokens }, () => chunk(token()).toString("latin1"));
  return STREAM_HEAD + events.join("") + chunk(DONE).toString("latin1") + LAST_CHUNK;
}

/** The body of a request as JSON. */
export function asked(request: Received): Record<string, unknown> {
  return JSON.parse(request.body.toString("utf8")) as Record<string, unknown>;
}

export function headerOf({ head }: Received, name: string): string | null {
  return new RegExp(`^${name}: (.*)\\r$`, "im").exec(head)?.[1] ?? null;
}
