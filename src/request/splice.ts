import type { RequestShape } from "./requestShape.ts";
import type { Edit } from "./span.ts";

/** What the router changes in a body; everything else passes byte for byte. */
export interface Rewrite {
  /** The name under which the engine serves the model; null leaves the client's. */
  readonly model?: string | null;
  /** The router wants the usage chunk of a stream for itself. */
  readonly askUsage?: boolean;
}

/** The edits that a body needs before it may go to an engine: forbidden members out, `rewrite` in. Sorted. */
export function editsFor(shape: RequestShape, rewrite: Rewrite = {}): Edit[] {
  const edits: Edit[] = shape.strippedSpans.map(({ start, end }) => ({ start, end, replacement: "" }));
  if (rewrite.model !== undefined && rewrite.model !== null && rewrite.model !== shape.model) {
    const replacement = shape.encoding === "json" ? JSON.stringify(rewrite.model) : rewrite.model;
    if (shape.modelSpan !== null) edits.push({ ...shape.modelSpan, replacement });
  }
  if (rewrite.askUsage === true && shape.usageEdit !== null) edits.push(shape.usageEdit);
  // An insertion goes before what is cut out at the same place.
  return edits.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** More pieces than this are joined: by then copying the bytes costs less than a buffer and a write for each. */
const MAX_PIECES = 32;

/**
 * The body with its edits applied, as at most MAX_PIECES pieces to be written one after another; unchanged bytes are not copied.
 *
 * @param edits sorted by position and apart from one another
 */
export function spliceBody(body: Buffer, edits: readonly Edit[]): Buffer[] {
  if (edits.length === 0) return [body];
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { start, end, replacement } of edits) {
    if (start < at || end < start || end > body.length)
      throw new RangeError(`edit ${start}..${end} overlaps or ends past the body`);
    if (start > at) pieces.push(body.subarray(at, start));
    if (replacement !== "") pieces.push(Buffer.from(replacement, "utf8"));
    at = end;
  }
  if (at < body.length) pieces.push(body.subarray(at));
  return pieces.length <= MAX_PIECES ? pieces : [Buffer.concat(pieces)];
}
