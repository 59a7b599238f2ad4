/** A recording that cannot be read or used: says which file, where in it, and what is wrong. */
export class RecordingError extends Error {
  override readonly name = "RecordingError";
}
