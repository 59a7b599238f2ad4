/** The files of a tokenizer are missing, broken, or ask for something that cannot be done exactly here. */
export class TokenizerError extends Error {
  override readonly name = "TokenizerError";
}
