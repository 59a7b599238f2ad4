const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  404: "not_found_error",
  429: "rate_limit_error",
  503: "overloaded_error",
};

/** An answer of 4xx or 5xx in vLLM's shape. Thrown by routes, sent by the server. */
export class VllmError extends Error {
  readonly status: number;
  readonly body: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, message: string, type: string, param: string | null, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.body = JSON.stringify({ error: { message, type, param, code: status } });
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** The same for clients of Anthropic's API. */
  get anthropicBody(): string {
    const type = ANTHROPIC_TYPES[this.status] ?? (this.status < 500 ? "invalid_request_error" : "api_error");
    return JSON.stringify({ type: "error", error: { type, message: this.message } });
  }
}

/** A value that the model's parameters do not allow. */
export function badRequest(message: string, param: string | null = null): VllmError {
  return new VllmError(400, message, "BadRequestError", param);
}

/** A body that is not what the route takes, as pydantic reports it. */
export function invalidBody(detail: string, param: string | null): VllmError {
  return new VllmError(400, `1 validation error:\n  ${detail}`, "Bad Request", param);
}

export function unknownModel(model: string, base: string): VllmError {
  return new VllmError(404, `The model \`${model}\` does not exist. Valid aliases: ${base}.`, "NotFoundError", "model");
}
