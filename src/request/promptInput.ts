import { CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./ascii.ts";
import { isDigit, passValue, skipSpace } from "./jsonBytes.ts";
import { Elements } from "./jsonMembers.ts";
import { stringEnd } from "./jsonString.ts";
import { Mark, PlanWriter } from "./prompt.ts";
import { TokenReader } from "./tokenIds.ts";

/** What a field such as `prompt`, `input` or `input_ids` holds: one prompt or several, as text or as token ids. */
export interface PromptInput {
  /** Position after the value. */
  readonly end: number;
  readonly plan: PlanWriter | null;
  /** One array per prompt, joined where there are several: they follow one another in the chain. */
  readonly tokens: Uint32Array | null;
  readonly prompts: number;
  readonly malformed: boolean;
}

/** Reads the value at `at`: string, [string], [int], [[int]], or objects of an engine's own. */
export function readPromptInput(bytes: Buffer, at: number, depth: number): PromptInput {
  if (bytes[at] !== OPEN_BRACKET) {
    const plan = new PlanWriter();
    const end = planText(bytes, at, depth, plan);
    const given = bytes[at] === QUOTE || bytes[at] === OPEN_BRACE;
    return { end, plan: given ? plan : null, tokens: null, prompts: 1, malformed: false };
  }
  const first = bytes[skipSpace(bytes, at + 1)];
  if (isDigit(first)) {
    const tokens = new TokenReader(bytes);
    if (tokens.readList(at)) return tokenInput(tokens, 1);
  } else if (first === OPEN_BRACKET) {
    const tokens = new TokenReader(bytes);
    const prompts = tokens.readLists(at);
    if (prompts > 0) return tokenInput(tokens, prompts);
  } else if (first === QUOTE || first === OPEN_BRACE) {
    return readTexts(bytes, at, depth);
  }
  const end = passValue(bytes, at, depth, null);
  return { end, plan: null, tokens: null, prompts: 1, malformed: first !== CLOSE_BRACKET };
}

function tokenInput(tokens: TokenReader, prompts: number): PromptInput {
  return { end: tokens.at, plan: null, tokens: tokens.tokens(), prompts, malformed: false };
}

function readTexts(bytes: Buffer, at: number, depth: number): PromptInput {
  const plan = new PlanWriter();
  const texts = new Elements(bytes, at, depth);
  let malformed = false;
  while (texts.next()) {
    if (texts.count > 1) plan.mark(Mark.prompt);
    const first = bytes[texts.at];
    if (first !== QUOTE && first !== OPEN_BRACE) malformed = true;
    texts.at = planText(bytes, texts.at, depth + 1, plan);
  }
  return { end: texts.at, plan, tokens: null, prompts: texts.count, malformed };
}

function planText(bytes: Buffer, at: number, depth: number, plan: PlanWriter): number {
  if (bytes[at] !== QUOTE) return passValue(bytes, at, depth, plan);
  const close = stringEnd(bytes, at);
  plan.copy(at + 1, close);
  return close + 1;
}
