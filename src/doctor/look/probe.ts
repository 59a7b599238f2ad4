import { z } from "zod";
import { parseJson } from "#src/engines/answers.ts";
import type { AskEngine, EngineAdapter, EngineAnswer } from "#src/engines/engineAdapter.ts";
import type { KvEventBatch } from "#src/engines/events/kvEvent.ts";
import type { ProbeEvent, ProbeReading, SeenEngine } from "../sighting.ts";
import type { EventTap } from "./eventTap.ts";
import type { LookTools } from "./lookTools.ts";
import { baseModelOf, tokenize } from "./tokens.ts";

/** Enough that the repeat finds a block, and little work: two blocks and some, of at most this many tokens in all. */
const PROBE_BLOCKS = 2.5;
const MAX_PROBE_TOKENS = 2048;
const ASSUMED_BLOCK_TOKENS = 64;
const WORDS = "tell what was heard before and what is new ".split(" ");

const Answer = z.object({
  usage: z.object({
    prompt_tokens: z.number().int().min(0).nullish(),
    prompt_tokens_details: z.object({ cached_tokens: z.number().int().min(0).nullish() }).nullish(),
  }),
});

/** Asks for one token twice, with a prompt that no one has sent before, and listens to what is published of it. */
export async function probeEngine(
  { profile, events }: SeenEngine,
  { adapter, ask, tap }: { adapter: EngineAdapter; ask: AskEngine; tap: EventTap },
  tools: LookTools,
): Promise<ProbeReading | null> {
  const model = baseModelOf(profile);
  if (tools.nonce === null || model === null) return null;
  const blockTokens = profile.kvBlockTokens ?? ASSUMED_BLOCK_TOKENS;
  const prompt = promptOf(tools.nonce, Math.min(MAX_PROBE_TOKENS, Math.ceil(PROBE_BLOCKS * blockTokens)));
  const tokens = await tokenize(profile.kind, ask, model, prompt);
  const isTold =
    profile.prefixCachingEnabled !== false &&
    events.kind === "published" &&
    events.ranks.some(({ unreachable }) => unreachable === null);
  const told = tokens !== null && tokens.length > blockTokens && isTold ? new ToldPrompt(tokens) : null;
  if (told !== null) tap.onBatch((batch, receivedMs) => told.hear(batch, receivedMs));

  const pin = profile.dataParallelRanks > 1 ? adapter.rankHeader(0) : null;
  const request = {
    method: "POST",
    body: JSON.stringify({ model, prompt, max_tokens: 1, temperature: 0 }),
    headers: pin === null ? {} : { [pin[0]]: pin[1] },
    timeoutMs: tools.limits.probeMs,
  } as const;
  let usage: Usage = { promptTokens: null, cachedTokens: null };
  for (let times = 0; times < 2; times++) {
    try {
      usage = readUsage(await ask("/v1/completions", request));
    } catch (caught) {
      const failure = caught instanceof Error ? caught.message : String(caught);
      return { model, failure, promptTokens: null, cachedTokens: null, event: null };
    }
  }
  return { model, failure: null, ...usage, event: (await told?.outcome(tools)) ?? null };
}

/** Words that begin with the nonce, at least one token each. */
function promptOf(nonce: string, tokens: number): string {
  return [nonce, ...Array.from({ length: tokens }, (_, at) => WORDS[at % WORDS.length])].join(" ");
}

interface Usage {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
}

function readUsage({ status, body }: EngineAnswer): Usage {
  if (status !== 200) throw new Error(`POST /v1/completions answered ${status}: ${body.slice(0, 300)}`);
  const usage = Answer.safeParse(parseJson(body)).data?.usage;
  return {
    promptTokens: usage?.prompt_tokens ?? null,
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? null,
  };
}

/** Waits for the event that stores a prompt's first block, among all others. */
class ToldPrompt {
  readonly #tokens: readonly number[];
  #event: ProbeEvent | null = null;
  #unreadable = false;
  #told: () => void = () => {};

  constructor(tokens: readonly number[]) {
    this.#tokens = tokens;
  }

  hear({ events, publishedMs, unreadableEvents }: KvEventBatch, receivedMs: number): void {
    this.#unreadable ||= unreadableEvents > 0;
    for (const event of events) {
      if (event.kind !== "stored" || event.parent !== null || !this.#isStored(event.tokenIds, event.blockTokens))
        continue;
      const { blockTokens, engineHashes } = event;
      this.#event ??= { blockTokens, firstHash: engineHashes[0] ?? 0n, aheadMs: publishedMs - receivedMs };
      this.#told();
    }
  }

  /** Events come with the step they tell of, so mostly before the answer; slow ones are given a moment. */
  outcome({ timers, limits }: LookTools): Promise<ProbeReading["event"]> {
    return new Promise((resolve) => {
      const settle = (): void => {
        cancel();
        resolve(this.#event ?? (this.#unreadable ? "unreadable" : "missing"));
      };
      const cancel = timers.after(limits.eventMs, settle);
      this.#told = settle;
      if (this.#event !== null) settle();
    });
  }

  #isStored(tokenIds: Uint32Array, blockTokens: number): boolean {
    if (blockTokens === 0 || tokenIds.length < blockTokens) return false;
    return tokenIds.every((token, at) => token === this.#tokens[at]);
  }
}
