import { SeededRandom } from "#src/determinism/random.ts";
import { post } from "./routerSetup.ts";

const WORDS =
  "the cache holds what an engine has seen before and a router that knows it can send each turn of a conversation to where its beginning lies while others wait für Änderungen 東京 naïve emoji 🦜 code {x: 1} numbers 12345".split(
    " ",
  );

export interface ConversationSpec {
  readonly conversations: number;
  readonly turns: number;
  /** How many are talking at a time. */
  readonly atOnce: number;
  /** Keeps this run's blocks apart from others'. */
  readonly salt: string;
  readonly seed: number;
}

export interface ConversationTotals {
  requests: number;
  promptTokens: number;
  /** As the engines report. */
  cachedTokens: number;
  /** What would be cached if each turn found the whole turn before it, in full blocks. */
  cacheableTokens: number;
}

interface ChatAnswer {
  readonly prompt_token_ids: readonly number[];
  readonly choices: readonly [
    { readonly message: { readonly content: string }; readonly token_ids: readonly number[] },
  ];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

/** Holds conversations, several at a time, and adds up what was cached. */
export async function converse(url: string, spec: ConversationSpec, blockTokens: number): Promise<ConversationTotals> {
  const totals: ConversationTotals = { requests: 0, promptTokens: 0, cachedTokens: 0, cacheableTokens: 0 };
  const random = new SeededRandom(spec.seed);
  const text = (words: number): string =>
    Array.from({ length: words }, () => WORDS[random.below(WORDS.length)]).join(" ");
  const systems = Array.from({ length: 3 }, (_, at) => `You are assistant ${at}. ${text(60)}`);
  const plans = Array.from({ length: spec.conversations }, (_, at) => ({
    system: systems[at % systems.length]!,
    // Long enough that computing a conversation anew costs more than waiting for a turn of another.
    turns: Array.from({ length: spec.turns }, () => text(200 + random.below(150))),
  }));
  const talk = async (): Promise<void> => {
    for (let plan = plans.pop(); plan !== undefined; plan = plans.pop()) {
      const messages = [{ role: "system", content: plan.system }];
      let before: readonly number[] = [];
      for (const content of plan.turns) {
        messages.push({ role: "user", content });
        const answer = await post<ChatAnswer>(`${url}/v1/chat/completions`, {
          model: "target",
          messages,
          max_tokens: 24,
          temperature: 0,
          return_token_ids: true,
          cache_salt: spec.salt,
        });
        const [{ message, token_ids: output }] = answer.choices;
        totals.requests++;
        totals.promptTokens += answer.usage.prompt_tokens;
        totals.cachedTokens += answer.usage.prompt_tokens_details.cached_tokens;
        totals.cacheableTokens += cacheable(before, answer.prompt_token_ids, blockTokens);
        before = [...answer.prompt_token_ids, ...output];
        messages.push({ role: "assistant", content: message.content });
      }
    }
  };
  await Promise.all(Array.from({ length: spec.atOnce }, talk));
  return totals;
}

/** The engine computes the last token of a prompt in any case. */
function cacheable(before: readonly number[], prompt: readonly number[], blockTokens: number): number {
  let shared = 0;
  while (shared < prompt.length - 1 && prompt[shared] === before[shared]) shared++;
  return shared - (shared % blockTokens);
}
