import { BACKSLASH } from "./ascii.ts";
import { isForbidden, mayBeForbidden } from "./forbidden.ts";
import { isWord } from "./jsonBytes.ts";
import { stringText } from "./jsonString.ts";

/** Single values that describe the request. */
export type ScalarKind =
  | "model"
  | "stream"
  | "user"
  | "safetyIdentifier"
  | "promptCacheKey"
  | "sessionId"
  | "cacheSalt"
  | "priority"
  | "prediction";

/** Parts of the prompt, see prompt.ts. */
export type PromptKind = "root" | "rootMedia" | "objects" | "system" | "conversation" | "input";

const PROMPT_KINDS: ReadonlySet<string> = new Set<PromptKind>([
  "root",
  "rootMedia",
  "objects",
  "system",
  "conversation",
  "input",
]);

export function isPromptKind(kind: FieldKind): kind is PromptKind {
  return PROMPT_KINDS.has(kind);
}

/** How a top-level member is read. `forbidden` ones never reach an engine; unknown ones pass untouched. */
export type FieldKind =
  | ScalarKind
  | PromptKind
  | "streamOptions"
  | "outputLimit"
  | "sequences"
  | "metadata"
  | "settings"
  | "forbidden";

export interface Field {
  readonly kind: FieldKind;
  /** Among limits: the larger wins over the smaller, as in the engines. Among prompt fields: their order. */
  readonly rank: number;
}

/** No field has a longer name, even if each of its characters is escaped. */
const MAX_NAME_BYTES = 512;

const FORBIDDEN: Field = { kind: "forbidden", rank: 0 };

/** Finds fields by the bytes of their names, without making strings of them. */
export class FieldTable {
  readonly #byHash = new Map<number, { readonly name: string; readonly field: Field }>();
  readonly #byName: ReadonlyMap<string, Field>;

  constructor(fields: ReadonlyMap<string, Field>) {
    this.#byName = fields;
    for (const [name, field] of fields) {
      const hash = hashOf(Buffer.from(name, "latin1"), 0, name.length);
      const other = this.#byHash.get(hash);
      if (other !== undefined) throw new Error(`fields '${other.name}' and '${name}' have one hash`);
      this.#byHash.set(hash, { name, field });
    }
  }

  /** The field whose name stands between these quotes, as JSON reads it; undefined for a name that means nothing here. */
  find(bytes: Buffer, open: number, close: number): Field | undefined {
    if (close - open > MAX_NAME_BYTES) return undefined;
    const hash = hashOf(bytes, open + 1, close);
    const entry = hash < 0 ? undefined : this.#byHash.get(hash);
    if (entry !== undefined && isWord(bytes, open + 1, close, entry.name)) return entry.field;
    if (hash >= 0 && !mayBeForbidden(bytes[open + 1]!)) return undefined;
    const name = stringText(bytes, open, close);
    return this.#byName.get(name) ?? (isForbidden(name) ? FORBIDDEN : undefined);
  }
}

/** 31 bits of a name's bytes; -1 if it has escapes. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH) return -1;
    hash = (Math.imul(hash, 31) + byte) & 0x7fffffff;
  }
  return hash;
}
