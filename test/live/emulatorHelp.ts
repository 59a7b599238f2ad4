import { request } from "node:http";
import type { TestContext } from "node:test";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import type { EmulatedEngineOptions } from "#src/emulator/engineOptions.ts";

/** A fast engine that ends with the test. */
export async function emulate(t: TestContext, options: EmulatedEngineOptions = {}): Promise<EmulatedEngine> {
  const engine = await startEmulatedEngine({ timeScale: 0.01, ...options });
  t.after(() => engine.stop());
  return engine;
}

export interface ChatFields {
  readonly text?: string;
  readonly maxTokens?: number;
  readonly stream?: boolean;
  readonly more?: Record<string, unknown>;
}

export function chat(
  engine: { readonly url: string; readonly model: string },
  fields: ChatFields = {},
  init: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(`${engine.url}/v1/chat/completions`, {
    ...init,
    method: "POST",
    headers: { "content-type": "application/json", ...init.headers },
    body: chatBody(engine.model, fields),
  });
}

/** Waits for something that must come, without sleeping past it. Throws after 45 seconds, which a busy machine may need. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = Date.now() + 45_000;
  while (!(await holds())) {
    if (Date.now() > endMs) throw new Error(`never held: ${holds.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/**
 * A streamed chat: everything that arrived before it ended or broke. Not with `fetch`, whose body forgets what was not
 * read yet when the connection breaks.
 */
export function streamChat(
  engine: { readonly url: string; readonly model: string },
  fields: ChatFields,
  watch: { readonly signal?: AbortSignal; readonly onText?: (textSoFar: string) => void } = {},
): Promise<{ text: string; broken: boolean }> {
  const { signal, onText = () => {} } = watch;
  return new Promise((resolve, reject) => {
    const sent = request(
      `${engine.url}/v1/chat/completions`,
      { method: "POST", headers: { "content-type": "application/json" }, ...(signal === undefined ? {} : { signal }) },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => onText((text += part)));
        response.on("error", () => {});
        response.on("close", () => resolve({ text, broken: !response.complete }));
        sent.off("error", reject).on("error", () => {});
      },
    );
    sent.on("error", reject);
    sent.end(chatBody(engine.model, { ...fields, stream: true }));
  });
}

function chatBody(model: string, { text = "hello", maxTokens = 4, stream = false, more = {} }: ChatFields): string {
  return JSON.stringify({ model, messages: [{ role: "user", content: text }], max_tokens: maxTokens, stream, ...more });
}
