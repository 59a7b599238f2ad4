import { Runs } from "./content.ts";
import type { ChainOptions, Content } from "./content.ts";

/** Token ids are below this, as in a large vocabulary. */
const VOCABULARY = 2 ** 17;

/**
 * Made-up token ids of prompt and answer, for where real ones are hashed: those of a run depend on its identity and on
 * nothing else, so that prompts have in common what their runs have.
 */
export function tokensOf(
  content: Content,
  options: Pick<ChainOptions, "promptTokens" | "outputTokens" | "answerId">,
): Uint32Array {
  const tokens = new Uint32Array(options.promptTokens + options.outputTokens);
  const runs = new Runs(content, options);
  for (let at = 0; at < tokens.length; runs.next()) {
    const end = Math.min(runs.end, tokens.length);
    // A Weyl sequence from a start that the identity gives, its high bits taken.
    const start = Math.imul(
      (runs.id % 4294967296) ^ Math.imul(Math.floor(runs.id / 4294967296), 0x85ebca6b),
      0xc2b2ae35,
    );
    let state = start ^ (start >>> 15);
    for (; at < end; at++) {
      state = (state + 0x9e3779b9) | 0;
      tokens[at] = (Math.imul(state ^ (state >>> 16), 0x21f0aaad) >>> 15) % VOCABULARY;
    }
  }
  return tokens;
}
