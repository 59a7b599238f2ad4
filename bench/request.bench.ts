import { bench, do_not_optimize, group, run } from "mitata";
import { identify } from "#src/request/identify.ts";
import { readRequest } from "#src/request/readRequest.ts";
import { editsFor, spliceBody } from "#src/request/splice.ts";

/*
 * Reading and identifying a request, beside JSON.parse of the same body.
 *   node bench/request.bench.ts
 */

const JSON_TYPE = "application/json";
const CHAT = "/v1/chat/completions";
const OPTIONS = { bytesPerToken: 4, adapter: null, salt: null };

/** A chat of about `bytes` bytes: prose with line breaks, some code with quotes, some words beyond ASCII. */
function chatOf(bytes: number, messages: number): Buffer {
  const prose = "The queue was short, so the request went to the second replica and waited there.\n";
  const code = 'if (name === "kvasir") {\n  return { "ok": true };\n}\n';
  const foreign = "Größe und Übermaß — 価格は予測時間です。\n";
  const length = Math.floor(bytes / messages) - 40;
  const content = (index: number): string => {
    let text = `Turn ${index}. `;
    for (let line = 0; Buffer.byteLength(text) < length; line++) {
      text += line % 8 === 3 ? code : line % 8 === 6 ? foreign : prose;
    }
    return text.slice(0, length);
  };
  const list = Array.from({ length: messages }, (_, index) => ({
    role: index === 0 ? "system" : index % 2 === 1 ? "user" : "assistant",
    content: content(index),
  }));
  return Buffer.from(
    JSON.stringify({ model: "llama-3.1-70b", messages: list, temperature: 0.7, max_tokens: 512, stream: true }),
  );
}

function tokenPrompt(tokens: number): Buffer {
  const prompt = Array.from({ length: tokens }, (_, index) => (index * 7919) % 128_000);
  return Buffer.from(JSON.stringify({ model: "llama-3.1-70b", prompt, max_tokens: 16 }));
}

const bodies: [name: string, path: string, body: Buffer][] = [
  ["chat 2 KB", CHAT, chatOf(2_000, 3)],
  ["chat 220 KB", CHAT, chatOf(220_000, 40)],
  ["12,000 token ids", "/v1/completions", tokenPrompt(12_000)],
];

for (const [name, path, body] of bodies) {
  const shape = readRequest("POST", path, JSON_TYPE, body);
  group(`${name} (${body.length} bytes)`, () => {
    bench("read + identify", () => {
      const read = readRequest("POST", path, JSON_TYPE, body);
      do_not_optimize(identify(read, body, OPTIONS));
    });
    bench("read", () => do_not_optimize(readRequest("POST", path, JSON_TYPE, body)));
    bench("identify", () => do_not_optimize(identify(shape, body, OPTIONS)));
    bench("edits + splice", () =>
      do_not_optimize(spliceBody(body, editsFor(shape, { model: "base", askUsage: true }))));
    bench("JSON.parse(toString)", () => do_not_optimize(JSON.parse(body.toString())));
  });
}

await run();
