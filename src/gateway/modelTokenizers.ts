import { ConfigError, problemAt } from "#src/config/configError.ts";
import type { Config } from "#src/config/schema.ts";
import type { TokenIdentities } from "#src/request/tokenIdentities.ts";

/** Loads the tokenizers that a configuration names. Rejects with ConfigError, and changes nothing, if one cannot be used. */
export async function loadTokenizers(config: Config, tokens: TokenIdentities): Promise<void> {
  const sources = new Map(
    Object.entries(config.models).flatMap(([model, { tokenizer }]) =>
      tokenizer === undefined ? [] : [[model, tokenizer]],
    ),
  );
  const problems = await tokens.load(sources);
  if (problems.size === 0) return;
  throw new ConfigError([...problems].map(([model, why]) => problemAt(config, ["models", model, "tokenizer"], why)));
}
