import { invalidBody } from "./vllmError.ts";

/** The parts of a `multipart/form-data` body by field name; of a repeated name the last. Throws VllmError. */
export function readMultipart(contentType: string | undefined, body: Buffer): ReadonlyMap<string, Buffer> {
  const boundary = /boundary="?([^";]+)"?/i.exec(contentType ?? "")?.[1];
  if (boundary === undefined || !/^multipart\/form-data/i.test(contentType ?? ""))
    throw invalidBody("Unsupported Media Type: Only 'multipart/form-data' is allowed", null);
  const parts = new Map<string, Buffer>();
  const delimiter = Buffer.from(`--${boundary}`);
  let start = body.indexOf(delimiter);
  while (start !== -1) {
    const next = body.indexOf(delimiter, start + delimiter.length);
    if (next === -1) break;
    // Between two delimiters: CRLF, headers, an empty line, the content, CRLF.
    const part = body.subarray(start + delimiter.length + 2, next - 2);
    const headerEnd = part.indexOf("\r\n\r\n");
    const name = /;\s*name="([^"]*)"/i.exec(part.subarray(0, Math.max(0, headerEnd)).toString("utf8"))?.[1];
    if (name !== undefined) parts.set(name, part.subarray(headerEnd + 4));
    start = next;
  }
  return parts;
}
