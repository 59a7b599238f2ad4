import { planConversation, planMessageText, planObjects } from "./conversation.ts";
import type { PromptKind } from "./fieldTable.ts";
import { passValue } from "./jsonBytes.ts";
import { isNull } from "./jsonScalars.ts";
import { DIGEST_BEGIN, Mark, NO_PROMPT, PlanWriter, type Prompt, type PromptPlan } from "./prompt.ts";
import { readPromptInput } from "./promptInput.ts";

const DEPTH = 1;

/** Collects the prompt from its top-level fields, in whatever order they stand. A later field of a name replaces it. */
export class PromptFields {
  readonly #root: (PromptPlan | null)[] = [];
  readonly #text: (PromptPlan | null)[] = [];
  readonly #tokens: (Uint32Array | null)[] = [];
  readonly #malformed: boolean[] = [];
  /** Prompts in the field that has most. */
  prompts = 1;

  /** Reads the value at `at`; returns its end. */
  read(kind: PromptKind, rank: number, bytes: Buffer, at: number): number {
    if (kind === "root" || kind === "rootMedia") return this.#readRoot(kind, rank, bytes, at);
    if (kind !== "input") return this.#readText(kind, rank, bytes, at);
    const input = readPromptInput(bytes, at, DEPTH);
    this.#text[rank] = input.plan === null ? null : input.plan.steps;
    this.#tokens[rank] = input.tokens;
    this.#malformed[rank] = input.malformed;
    this.prompts = Math.max(this.prompts, input.prompts);
    return input.end;
  }

  prompt(): Prompt {
    if (this.#root.length + this.#text.length + this.#tokens.length === 0) return NO_PROMPT;
    return {
      root: present(this.#root),
      text: present(this.#text),
      tokens: present(this.#tokens),
      malformed: this.#malformed.includes(true),
    };
  }

  #readRoot(kind: "root" | "rootMedia", rank: number, bytes: Buffer, at: number): number {
    this.#root[rank] = null;
    if (isNull(bytes, at)) return passValue(bytes, at, DEPTH, null);
    const plan = new PlanWriter();
    // The rank keeps apart what two fields may both say.
    plan.mark(rank + 1);
    if (kind === "rootMedia") plan.settle(plan.reserve(), DIGEST_BEGIN, 0);
    const end = passValue(bytes, at, DEPTH, plan);
    if (kind === "rootMedia") plan.endDigest();
    this.#root[rank] = plan.steps;
    return end;
  }

  #readText(kind: "objects" | "system" | "conversation", rank: number, bytes: Buffer, at: number): number {
    const plan = new PlanWriter();
    let end: number;
    if (kind === "conversation") end = planConversation(bytes, at, DEPTH, plan);
    else if (kind === "system") end = planMessageText(bytes, at, DEPTH, Mark.system, plan);
    else end = planObjects(bytes, at, DEPTH, plan);
    this.#text[rank] = plan.steps.length > 0 ? plan.steps : null;
    return end;
  }
}

function present<T>(values: readonly (T | null | undefined)[]): T[] {
  const found: T[] = [];
  for (const value of values) if (value !== null && value !== undefined) found.push(value);
  return found;
}
