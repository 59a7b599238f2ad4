import { z } from "zod";
import type { EngineKind } from "#src/discovery/replicaSpec.ts";
import { parseJson } from "#src/engines/answers.ts";
import type { AskEngine, EngineProfile } from "#src/engines/engineAdapter.ts";
import type { OwnTokens, TokenReading } from "../sighting.ts";
import type { ChatMessage, OwnTokenizer, Tokenizers } from "../tokenizers.ts";

/** Where tokenizers differ: spaces, digits, accents, scripts, signs of several code points, the end of a line. */
const PROMPT =
  "Does every engine read this alike?  Naïve café, 你好世界, Ελληνικά, עברית, 👩‍🚀🏽, ﬁ, 1234567890, snake_case\tand\n\n   indented() { code }\r\nend ";

const CHAT: readonly ChatMessage[] = [
  { role: "system", content: "You answer in one word." },
  { role: "user", content: "Is  ½ a number?\n" },
  { role: "assistant", content: "Yes." },
  { role: "user", content: "¿Y π?" },
];

const Tokens = z.object({ tokens: z.array(z.number().int().min(0)) });

/** The model to ask with; null: it serves none. */
export function baseModelOf({ models }: EngineProfile): string | null {
  return (models.find(({ parent }) => parent === null) ?? models[0])?.id ?? null;
}

/** What engine and router make of the same prompts. */
export async function readTokens(
  profile: EngineProfile,
  ask: AskEngine,
  tokenizers: Tokenizers,
): Promise<TokenReading> {
  const model = baseModelOf(profile);
  if (model === null) return { model, prompt: null, chat: null, own: { kind: "none" } };
  return {
    model,
    prompt: await tokenize(profile.kind, ask, model, PROMPT),
    chat: profile.kind === "vllm" ? await tokensAt(ask, "/tokenize", { model, messages: CHAT }) : null,
    own: await readOwn(model, tokenizers),
  };
}

async function readOwn(model: string, tokenizers: Tokenizers): Promise<OwnTokens> {
  try {
    const tokenizer = await tokenizers.of(model);
    if (tokenizer === null) return { kind: "none" };
    return { kind: "read", prompt: tokenizer.prompt(PROMPT), chat: readOwnChat(tokenizer) };
  } catch (caught) {
    return { kind: "unusable", why: messageOf(caught) };
  }
}

function readOwnChat(tokenizer: OwnTokenizer): readonly number[] | { why: string } {
  try {
    return tokenizer.chat(CHAT);
  } catch (caught) {
    return { why: messageOf(caught) };
  }
}

function messageOf(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught);
}

/** Where each kind of engine tokenizes, and what it wants to be sent. */
const ROUTES: Readonly<Record<EngineKind, readonly [path: string, body: (model: string, text: string) => unknown]>> = {
  vllm: ["/tokenize", (model, prompt) => ({ model, prompt })],
  sglang: ["/tokenize", (model, prompt) => ({ model, prompt })],
  trtllm: ["/_internal/tokenize", (_model, prompt) => ({ prompt })],
  llamacpp: ["/tokenize", (_model, content) => ({ content, add_special: true })],
};

/** The tokens of a text by the engine's own route; null: it has none, or refuses. */
export function tokenize(
  kind: EngineKind,
  ask: AskEngine,
  model: string,
  text: string,
): Promise<readonly number[] | null> {
  const [path, body] = ROUTES[kind];
  return tokensAt(ask, path, body(model, text));
}

async function tokensAt(ask: AskEngine, path: string, body: unknown): Promise<readonly number[] | null> {
  const answer = await ask(path, { method: "POST", body: JSON.stringify(body) }).catch(() => null);
  if (answer?.status !== 200) return null;
  return Tokens.safeParse(parseJson(answer.body)).data?.tokens ?? null;
}
