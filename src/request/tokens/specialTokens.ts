import { TokenizerError } from "./tokenizerError.ts";
import type { TokenizerConfig, TokenizerFile } from "./tokenizerFiles.ts";

/** Ids around a text that is encoded with `add_special_tokens`. */
export interface Surroundings {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

const NONE: Surroundings = { before: [], after: [] };
const NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

interface RawProcessor {
  readonly type: string;
  readonly processors?: readonly RawProcessor[];
  readonly single?: readonly { readonly SpecialToken?: { readonly id: string }; readonly Sequence?: object }[];
  readonly special_tokens?: Readonly<Record<string, { readonly ids: readonly number[] }>>;
}

/** Reads the `post_processor` of a tokenizer.json. @throws {TokenizerError} for kinds that language models do not use */
export function readSurroundings({ post_processor: raw }: Pick<TokenizerFile, "post_processor">): Surroundings {
  return raw === null || raw === undefined ? NONE : surroundings(raw as RawProcessor);
}

function surroundings(processor: RawProcessor): Surroundings {
  switch (processor.type) {
    case "ByteLevel":
      return NONE;
    case "Sequence":
      return (processor.processors ?? []).map(surroundings).reduce(
        (inner, outer) => ({
          before: [...outer.before, ...inner.before],
          after: [...inner.after, ...outer.after],
        }),
        NONE,
      );
    case "TemplateProcessing":
      return fromTemplate(processor);
    default:
      throw new TokenizerError(`the post-processor ${processor.type} is not supported`);
  }
}

function fromTemplate({ single = [], special_tokens: tokens = {} }: RawProcessor): Surroundings {
  const before: number[] = [];
  const after: number[] = [];
  let passed = false;
  for (const { SpecialToken: special, Sequence: sequence } of single) {
    if (sequence !== undefined) passed = true;
    else (passed ? after : before).push(...(tokens[special?.id ?? ""]?.ids ?? []));
  }
  return { before, after };
}

/** The special tokens that templates know by name, `bos_token` and so on. */
export function namedTokens(config: TokenizerConfig, older: Readonly<Record<string, unknown>>): Map<string, string> {
  const tokens = new Map<string, string>();
  const extra = config["extra_special_tokens"];
  const sources = [older, config, typeof extra === "object" && extra !== null && !Array.isArray(extra) ? extra : {}];
  for (const source of sources) {
    for (const [name, value] of Object.entries(source)) {
      if (source !== sources[2] && !NAMES.includes(name)) continue;
      const content = contentOf(value);
      if (content !== null) tokens.set(name, content);
      else tokens.delete(name);
    }
  }
  return tokens;
}

function contentOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || !("content" in value)) return null;
  return typeof value.content === "string" ? value.content : null;
}
