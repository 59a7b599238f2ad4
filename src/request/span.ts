/** Bytes `start` (included) to `end` (excluded) of a body. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Replaces a span of a body; `start === end` inserts. */
export interface Edit extends Span {
  readonly replacement: string;
}
