import { missingModel } from "#src/errors/shared.ts";
import { type ApiKind, generates } from "./apiKind.ts";
import { OPEN_BRACE, QUOTE } from "./ascii.ts";
import { fieldsOf } from "./fields.ts";
import { type Field, isPromptKind, type ScalarKind } from "./fieldTable.ts";
import { invalidJson } from "./invalidJson.ts";
import { passValue, skipSpace } from "./jsonBytes.ts";
import { Members } from "./jsonMembers.ts";
import { isNull, isTrue, readName, readNumber, readString } from "./jsonScalars.ts";
import { MemberRemoval } from "./memberRemoval.ts";
import { PromptFields } from "./promptFields.ts";
import { MAX_SEQUENCES, type RequestShape } from "./requestShape.ts";
import { Sampling } from "./sampling.ts";
import type { Span } from "./span.ts";
import { UsageOption } from "./usageOption.ts";

/** Where a stream tells its usage only if asked through `stream_options`. */
const USAGE_ON_REQUEST: ReadonlySet<ApiKind> = new Set<ApiKind>(["chat", "completions", "vllm_generate"]);

/** Reads a JSON body whose object begins at `open`. Of equal keys the last one counts, as it does in the engines. */
export function readJsonRequest(api: ApiKind, body: Buffer, open: number): RequestShape {
  const fields = fieldsOf(api);
  const found = new Findings();
  const removal = new MemberRemoval(found.stripped);
  const members = new Members(body, open, 0);
  let kept = 0;
  while (members.next()) {
    const field = fields.find(body, members.keyOpen, members.keyClose);
    if (field?.kind === "forbidden") {
      members.at = passValue(body, members.value, 1, null);
      removal.remove(members);
      continue;
    }
    removal.keep(members);
    kept++;
    members.at = field === undefined ? passValue(body, members.value, 1, null) : found.read(field, body, members.value);
  }
  removal.end();
  const end = skipSpace(body, members.at);
  if (end < body.length) throw invalidJson("something follows the end", end);
  return found.shape(api, body, open + 1, kept === 0);
}

/** What the members of one body said so far. */
class Findings {
  readonly stripped: Span[] = [];
  readonly #usage = new UsageOption();
  readonly #sampling = new Sampling();
  readonly #prompt = new PromptFields();
  #modelSpan: Span | null = null;
  #stream = false;
  #user: string | null = null;
  #safetyIdentifier: string | null = null;
  #metadataUser: string | null = null;
  #promptCacheKey: string | null = null;
  #sessionId: string | null = null;
  #cacheSalt: string | null = null;
  #priority: number | null = null;
  #predictedOutputBytes: number | null = null;

  /** Takes in the value at `at`; returns its end. */
  read(field: Field, bytes: Buffer, at: number): number {
    const { kind, rank } = field;
    if (isPromptKind(kind)) return this.#prompt.read(kind, rank, bytes, at);
    if (kind === "outputLimit" || kind === "sequences") return this.#sampling.readCount(field, bytes, at, 1);
    if (kind === "settings") return this.#sampling.readSettings(bytes, at, 1, this.stripped);
    if (kind === "streamOptions") return this.#usage.read(bytes, at);
    if (kind === "metadata") return this.#readMetadata(bytes, at);
    const end = passValue(bytes, at, 1, null);
    if (kind !== "forbidden") this.#readScalar(kind, bytes, at, end);
    return end;
  }

  shape(api: ApiKind, body: Buffer, afterBrace: number, emptied: boolean): RequestShape {
    const model = this.#modelName(body);
    return {
      api,
      encoding: "json",
      model,
      modelSpan: this.#modelSpan,
      stream: this.#stream,
      maxOutputTokens: this.#sampling.maxOutputTokens(),
      sequences: Math.min(MAX_SEQUENCES, this.#sampling.sequencesPerPrompt() * this.#prompt.prompts),
      user: this.#user ?? this.#safetyIdentifier ?? this.#metadataUser,
      promptCacheKey: this.#promptCacheKey ?? this.#sessionId,
      cacheSalt: this.#cacheSalt,
      priority: this.#priority,
      predictedOutputBytes: this.#predictedOutputBytes,
      wantsUsage: this.#usage.wanted,
      usageEdit: this.#stream && USAGE_ON_REQUEST.has(api) ? this.#usage.edit(afterBrace, emptied) : null,
      generates: generates(api),
      prompt: this.#prompt.prompt(),
      strippedSpans: this.stripped,
    };
  }

  #modelName(body: Buffer): string | null {
    if (this.#modelSpan === null) return null;
    const name = readName(body, this.#modelSpan.start);
    if (name === null && !isNull(body, this.#modelSpan.start))
      throw missingModel("The request's model must be a string, not empty and not endless.");
    return name;
  }

  #readScalar(kind: ScalarKind, bytes: Buffer, at: number, end: number): void {
    switch (kind) {
      case "model":
        this.#modelSpan = { start: at, end };
        break;
      case "stream":
        this.#stream = isTrue(bytes, at);
        break;
      case "user":
        this.#user = readName(bytes, at);
        break;
      case "safetyIdentifier":
        this.#safetyIdentifier = readName(bytes, at);
        break;
      case "promptCacheKey":
        this.#promptCacheKey = readName(bytes, at);
        break;
      case "sessionId":
        this.#sessionId = readName(bytes, at);
        break;
      case "cacheSalt":
        this.#cacheSalt = readString(bytes, at);
        break;
      case "priority": {
        const priority = readNumber(bytes, at);
        this.#priority = Number.isSafeInteger(priority) ? priority : null;
        break;
      }
      case "prediction":
        this.#predictedOutputBytes = bytes[at] === OPEN_BRACE || bytes[at] === QUOTE ? end - at : null;
        break;
    }
  }

  #readMetadata(bytes: Buffer, at: number): number {
    this.#metadataUser = null;
    if (bytes[at] !== OPEN_BRACE) return passValue(bytes, at, 1, null);
    const members = new Members(bytes, at, 1);
    while (members.next()) {
      members.at = passValue(bytes, members.value, 2, null);
      if (members.keyIs("user_id")) this.#metadataUser = readName(bytes, members.value);
    }
    return members.at;
  }
}
