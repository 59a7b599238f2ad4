/** Why a template gave no text. */
export type TemplateFailure =
  /** The template itself refused the conversation (`raise_exception`), as it does in the engine. */
  | "refused"
  /** Python would have raised too: an operation on the wrong kind of value. */
  | "failed"
  /** The template uses something that is not built here. Never guessed. */
  | "unsupported"
  /** More steps or output than a prompt can need. */
  | "too_much";

export class TemplateError extends Error {
  override readonly name = "TemplateError";
  readonly failure: TemplateFailure;

  constructor(failure: TemplateFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}

export function failed(message: string): TemplateError {
  return new TemplateError("failed", message);
}

export function unsupported(what: string): TemplateError {
  return new TemplateError("unsupported", `${what} is not supported`);
}
