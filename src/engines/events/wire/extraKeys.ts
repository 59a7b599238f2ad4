/** What a stored event's `extra_keys` say beside the adapter's name, which has a field of its own. */
export interface ExtraKeys {
  readonly salt: string | null;
  /** By block; null where no block has any. */
  readonly blockKeys: (string | null)[] | null;
}

export const NO_EXTRA_KEYS: ExtraKeys = { salt: null, blockKeys: null };

/**
 * Reads vLLM's `extra_keys`: per block null or a list of, in this order, the adapter's name, `[media id, offset]`
 * pairs, the cache salt (in the first block of a prompt only), digests of prompt embeddings. They come untagged, or as
 * `["lora", name, path]`, `["mm", id, offset]`, `["cache_salt", salt]`, `["prompt_embeds", digest]`.
 */
export function readExtraKeys(
  lists: readonly unknown[],
  { loraName, startsPrompt }: { loraName: string | null; startsPrompt: boolean },
): ExtraKeys {
  let salt: string | null = null;
  const blockKeys = lists.map((list, block) => {
    if (!Array.isArray(list)) return null;
    const keys: string[] = [];
    for (const key of list as readonly unknown[]) {
      if (Array.isArray(key)) {
        const [tag, value, offset] = key as readonly unknown[];
        if (tag === "lora") continue;
        if (tag === "cache_salt") salt = asText(value);
        else if (tag === "mm") keys.push(mediaKey(value, offset));
        else if (tag === "prompt_embeds") keys.push(asText(value));
        else keys.push(mediaKey(tag, value));
      } else if (typeof key === "string" && key === loraName) {
        continue;
      } else if (typeof key === "string" && startsPrompt && block === 0) {
        // Before media ids came with offsets, one could stand here: then the chain is merely found under a salt that
        // nobody sends. Prompt embeddings are bytes, which come as hex, and must not pass for a salt; they come last.
        if (salt !== null) keys.push(key);
        else salt = key;
      } else {
        keys.push(asText(key));
      }
    }
    return keys.length === 0 ? null : keys.join(",");
  });
  return { salt, blockKeys: blockKeys.every((key) => key === null) ? null : blockKeys };
}

/** `offset` is where the medium begins, in tokens from the block's first; negative where it began in an earlier block. */
export function mediaKey(id: unknown, offset: unknown): string {
  return offset === undefined ? asText(id) : `${asText(id)}@${asText(offset)}`;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
