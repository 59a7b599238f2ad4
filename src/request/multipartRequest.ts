import { RouterError } from "#src/errors/routerError.ts";
import type { ApiKind } from "./apiKind.ts";
import { isForbidden } from "./forbidden.ts";
import { plainShape, type RequestShape } from "./requestShape.ts";
import type { Span } from "./span.ts";

const BOUNDARY = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))/i;
const NAME = /;\s*name\s*=\s*(?:"((?:[^"\\\r\n]|\\.)*)"|([^\s;"]+))/i;
const MAX_PARTS = 1000;
const MAX_PART_HEADER_BYTES = 8192;
const MAX_VALUE_BYTES = 1024;

function badForm(problem: string): RouterError {
  return new RouterError("invalid_request", `The multipart form is not valid: ${problem}.`, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
  });
}

/** Finds `model` and `stream` anywhere in a form (RFC 7578); the last one counts, as in the engines. */
export function readMultipartRequest(api: ApiKind, contentType: string, body: Buffer): RequestShape {
  const match = BOUNDARY.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw badForm("its boundary is missing");
  let modelSpan: Span | null = null;
  const strippedSpans: Span[] = [];
  let model: string | null = null;
  let stream = false;
  for (const part of parts(body, boundary)) {
    if (isForbidden(part.name)) strippedSpans.push({ start: part.start, end: part.end });
    if (part.name !== "model" && part.name !== "stream") continue;
    if (part.value.end - part.value.start > MAX_VALUE_BYTES) throw badForm(`'${part.name}' is too long`);
    const value = body.toString("utf8", part.value.start, part.value.end);
    if (part.name === "stream") stream = /^(true|1|on|yes|t|y)$/i.test(value);
    else {
      model = value;
      modelSpan = part.value;
    }
  }
  return {
    ...plainShape(api, "multipart"),
    model: model === "" ? null : model,
    modelSpan,
    stream,
    strippedSpans,
  };
}

interface Part {
  readonly name: string;
  /** From its delimiter up to the next part's delimiter. */
  readonly start: number;
  readonly end: number;
  readonly value: Span;
}

function* parts(body: Buffer, boundary: string): Generator<Part> {
  const opening = Buffer.from(`--${boundary}`, "latin1");
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  let start = body.subarray(0, opening.length).equals(opening) ? 0 : body.indexOf(delimiter) + 2;
  if (start === 1) throw badForm("its first delimiter is missing");
  for (let count = 0; ; count++) {
    let at = start + opening.length;
    if (body[at] === 0x2d && body[at + 1] === 0x2d) return;
    // White space may pad a delimiter line.
    while (body[at] === 0x20 || body[at] === 0x09) at++;
    if (body[at] !== 0x0d || body[at + 1] !== 0x0a) throw badForm("a delimiter is followed by something else");
    if (count === MAX_PARTS) throw badForm(`more than ${MAX_PARTS} parts`);
    const headersEnd = body.indexOf("\r\n\r\n", at, "latin1");
    if (headersEnd < 0 || headersEnd - at > MAX_PART_HEADER_BYTES) throw badForm("a part's headers have no end");
    const valueStart = headersEnd + 4;
    const valueEnd = body.indexOf(delimiter, valueStart - 2);
    if (valueEnd < 0) throw badForm("its last delimiter is missing");
    const next = valueEnd + 2;
    const name = partName(body.toString("latin1", at, headersEnd));
    yield { name, start, end: next, value: { start: valueStart, end: Math.max(valueStart, valueEnd) } };
    start = next;
  }
}

/** Field name of a part. What another parser might read as another name is refused. */
function partName(headers: string): string {
  const dispositions = headers.split("\r\n").filter((line) => /^content-disposition\s*:/i.test(line));
  const disposition = dispositions[0];
  if (disposition === undefined || dispositions.length > 1) throw badForm("a part needs one content-disposition");
  if (/;\s*name\*/i.test(disposition)) throw badForm("a part's name is in an extended notation");
  const match = NAME.exec(disposition);
  if (match === null) throw badForm("a part has no name");
  return match[1] === undefined ? match[2]! : match[1].replace(/\\(.)/g, "$1");
}
