import { Agent, request } from "undici";
import type { PlannedChat, Traffic } from "./traffic.ts";

/** How one chat went, as its client saw it. */
export interface ChatResult {
  readonly kind: PlannedChat["kind"];
  readonly status: number;
  readonly replica: string | null;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

export interface PlayerOptions {
  readonly url: string;
  readonly model: string;
  readonly traffic: Traffic;
  /** Chats beyond this many under way are put off, so that a slow fleet cannot pile them up without bound. */
  readonly maxInFlight: number;
  readonly onResult: (result: ChatResult) => void;
}

interface StreamedChunk {
  choices?: { delta?: { content?: string } }[];
  usage?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number } | null;
  } | null;
}

/** Sends planned chats at their times, as streaming clients. */
export class Player {
  readonly #options: PlayerOptions;
  readonly #agent = new Agent({ connections: null, pipelining: 1 });
  readonly #stopping = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #startMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #ended: (() => void) | null = null;
  sent = 0;
  failed = 0;

  constructor(options: PlayerOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#underWay.size;
  }

  /** Resolves when the traffic has ended and every answer has come, or after `stop`. */
  async run(): Promise<void> {
    this.#startMs = performance.now();
    await new Promise<void>((resolve) => {
      this.#ended = resolve;
      this.#plan(this.#options.traffic());
    });
    await Promise.allSettled(this.#underWay);
    await this.#agent.close();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#stopping.abort();
    this.#ended?.();
  }

  #plan(chat: PlannedChat | null): void {
    if (chat === null || this.#stopping.signal.aborted) {
      this.#ended?.();
      return;
    }
    const waitMs = Math.max(0, this.#startMs + chat.atMs - performance.now());
    this.#timer = setTimeout(() => {
      if (this.inFlight >= this.#options.maxInFlight) {
        this.#startMs += 50;
        this.#plan(chat);
        return;
      }
      const exchange = this.#send(chat)
        .catch(() => {
          if (!this.#stopping.signal.aborted) this.failed++;
        })
        .finally(() => this.#underWay.delete(exchange));
      this.#underWay.add(exchange);
      this.#plan(this.#options.traffic());
    }, waitMs);
  }

  async #send(chat: PlannedChat): Promise<void> {
    this.sent++;
    const startMs = performance.now();
    const { statusCode, headers, body } = await request(`${this.#options.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: this.#options.model,
        messages: chat.messages,
        max_tokens: chat.maxTokens,
        stream: true,
        stream_options: { include_usage: true },
      }),
      dispatcher: this.#agent,
      signal: this.#stopping.signal,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    let ttftMs = 0;
    let text = "";
    let usage: StreamedChunk["usage"] = null;
    for await (const event of events(body)) {
      if (ttftMs === 0) ttftMs = performance.now() - startMs;
      const chunk = JSON.parse(event) as StreamedChunk;
      text += chunk.choices?.[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    if (statusCode === 200) chat.answered?.(text);
    else this.failed++;
    const replica = headers["x-kvasir-replica"];
    this.#options.onResult({
      kind: chat.kind,
      status: statusCode,
      replica: typeof replica === "string" ? replica : null,
      ttftMs,
      totalMs: performance.now() - startMs,
      promptTokens: usage?.prompt_tokens ?? 0,
      cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      outputTokens: usage?.completion_tokens ?? 0,
    });
  }
}

/** The `data:` payloads of an event stream, without the closing `[DONE]`. */
async function* events(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      if (block.startsWith("data: ") && block !== "data: [DONE]") yield block.slice(6);
    }
  }
}
