/**
 * Why a prompt has no token ids although its model has a tokenizer. Counted by reason; its identity is then over text,
 * and approximate.
 */
export type TokenFallbackReason =
  /** An API that is not rendered here: embeddings, scores and the like. */
  | "unsupported_api"
  /** What stands in the prompt fields is refused by the engine too. */
  | "malformed_prompt"
  /** More than a million JSON values: building them would cost more memory than any prompt is worth. */
  | "too_many_values"
  /** Images, audio, video, embeddings: how many tokens they become only the model's processor knows. */
  | "media"
  /** The client brought a chat template. Such are never run here. */
  | "client_template"
  /** Template arguments that reach into the tokenizer. */
  | "template_arguments"
  /** The model's folder has no chat template. */
  | "no_template"
  /** The template raised an exception, as it does in the engine. */
  | "template_refused"
  | "template_failed"
  | "template_unsupported"
  | "template_too_much"
  /** The model's prompts are not made by a template (harmony and others). */
  | "unsupported_renderer"
  /** The prompt continues a conversation that only the engine knows. */
  | "stored_conversation"
  /** Tools or items of a kind that is not converted here. */
  | "unsupported_item"
  /** `truncate_prompt_tokens`: what is left depends on the engine's settings. */
  | "truncation"
  /** `suffix`: a rendering for code models only. */
  | "suffix"
  /** No thread had room for it in time. */
  | "overloaded"
  /** The thread or the engine that should have tokenised it failed. */
  | "tokenizer_failed";

export class TokenFallback extends Error {
  override readonly name = "TokenFallback";
  readonly reason: TokenFallbackReason;

  constructor(reason: TokenFallbackReason, message: string = reason) {
    super(message);
    this.reason = reason;
  }
}
