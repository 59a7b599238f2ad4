import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bench, do_not_optimize, group, run } from "mitata";
import { Template } from "#src/request/tokens/jinja/template.ts";
import { ModelTokenizer } from "#src/request/tokens/modelTokenizer.ts";
import { promptTokens } from "#src/request/tokens/promptTokens.ts";
import { parsePythonJson } from "#src/request/tokens/pythonJson.ts";
import { chainRoot, tokenChain } from "#src/request/tokens/tokenChain.ts";

/*
 * What token identity costs, on one thread. Takes a model's folder (tokenizer.json and a chat template); without one
 * the small recorded tokenizer, whose words are shorter, so that it makes more tokens of the same text.
 *   node bench/tokens.bench.ts [FOLDER]
 */

const folder = process.argv[2] ?? join(import.meta.dirname, "../test/recorded/tokens/bytes");
const now = new Date(2026, 0, 1);
const prose = ["http", "price", "cache-index", "kv-events", "operations", "emulator"]
  .map((name) => readFileSync(join(import.meta.dirname, `../docs/${name}.md`), "utf8"))
  .join("\n");

function passage(at: number, length: number): string {
  const start = (at * 1777) % (prose.length - length);
  return prose.slice(start, start + length);
}

function chatOf(messages: number, length: number, last: string): string {
  const turns = Array.from({ length: messages }, (_, at) => ({
    role: at % 2 === 0 ? "user" : "assistant",
    content: passage(at, length),
  }));
  return JSON.stringify({ model: "m", messages: [...turns, { role: "user", content: last }] });
}

const fresh = await ModelTokenizer.load(folder);
const forgetful = await ModelTokenizer.load(folder, { cacheBytes: 0 });
let asked = 0;
/** Never the same, so that the last message is always new. */
const question = (): string => `Question ${asked++}: ${passage(asked, 300)}`;

const small = (): string => chatOf(1, 200, question());
const conversation = (): string => chatOf(100, 2150, question());
const document = (): string => JSON.stringify({ messages: [{ role: "user", content: prose + question() }] });

for (const [name, make] of [
  ["a chat of 2 messages", small],
  ["the next turn of a conversation of 220 KB", conversation],
  [`a document of ${Math.round(prose.length / 1000)} KB and a new question in one message`, document],
] as const) {
  const tokens = promptTokens("chat", make(), fresh, now).tokens;
  group(`${name}: ${make().length} bytes, ${tokens} tokens`, () => {
    bench("seen before", () => do_not_optimize(promptTokens("chat", make(), fresh, now)));
    bench("its new message alone", () => do_not_optimize(promptTokens("chat", chatOf(0, 0, question()), fresh, now)));
    bench("words known, pieces not", () => do_not_optimize(promptTokens("chat", make(), forgetful, now)));
  });
}

const body = conversation();
const { ids } = promptTokens("chat", body, fresh, now);
const loop = new Template("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
const variables = new Map([["messages", (parsePythonJson(body) as Map<string, never>).get("messages")!]]);
group("parts of a turn", () => {
  bench("read the body", () => do_not_optimize(parsePythonJson(body)));
  bench("render a plain template", () => do_not_optimize(loop.render(variables, now)));
  bench("chain the blocks of 16", () => do_not_optimize(tokenChain(chainRoot(null, null, 16), ids, 16)));
});

await run();
