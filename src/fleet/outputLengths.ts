/** Output lengths as seen, per model and tenant. */
export class OutputLengths {
  #mean = 256;

  /** Expected output tokens of one sequence, at most `maxOutputTokens` (null: no limit), at least 1. */
  expect(model: string, tenant: string, maxOutputTokens: number | null): number {
    void [model, tenant];
    return Math.max(1, Math.min(maxOutputTokens ?? Number.POSITIVE_INFINITY, this.#mean));
  }

  /** One sequence ended by itself or by its limit after `outputTokens`. */
  observe(model: string, tenant: string, outputTokens: number): void {
    void [model, tenant];
    this.#mean += 0.02 * (outputTokens - this.#mean);
  }
}
