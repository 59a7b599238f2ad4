import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ModelTokenizer, type ModelTokenizerOptions } from "#src/request/tokens/modelTokenizer.ts";

/** Two families: byte pairs over bytes, and over characters with bytes for unknown ones. */
export const FAMILIES = ["bytes", "characters"] as const;
export type Family = (typeof FAMILIES)[number];

const RECORDED = join(import.meta.dirname, "../../../recorded/tokens");

export const folderOf = (family: Family): string => join(RECORDED, family);

export function recorded(name: string): unknown {
  return JSON.parse(readFileSync(join(RECORDED, name), "utf8"));
}

const loaded = new Map<Family, Promise<ModelTokenizer>>();

/** One for all tests that only read; with options, one of one's own. */
export function tokenizerOf(family: Family, options?: ModelTokenizerOptions): Promise<ModelTokenizer> {
  if (options !== undefined) return ModelTokenizer.load(folderOf(family), options);
  let tokenizer = loaded.get(family);
  if (tokenizer === undefined) loaded.set(family, (tokenizer = ModelTokenizer.load(folderOf(family))));
  return tokenizer;
}
