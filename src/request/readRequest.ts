import { bodyTooLarge, unsupportedMediaType } from "#src/errors/shared.ts";
import { apiKindOf } from "./apiKind.ts";
import { OPEN_BRACE } from "./ascii.ts";
import { invalidJson } from "./invalidJson.ts";
import { skipSpace } from "./jsonBytes.ts";
import { readJsonRequest } from "./jsonRequest.ts";
import { readMultipartRequest } from "./multipartRequest.ts";
import { plainShape, type RequestShape } from "./requestShape.ts";

export interface RequestLimits {
  readonly maxBodyBytes: number;
}

/** Room for a long audio file or a prompt of several million tokens. */
export const DEFAULT_LIMITS: RequestLimits = { maxBodyBytes: 64 * 1024 * 1024 };

/**
 * Finds what routing needs in a request's bytes, without building its object tree. It checks the structure that it
 * walks (top level, messages, brackets); the rest is for the engine's parser.
 *
 * @param target request target: path, possibly with a query
 * @param contentType the header's value, "" if there is none
 * @throws {RouterError} of the client: invalid_json, invalid_request, missing_model, unsupported_media_type,
 * body_too_large
 */
export function readRequest(
  method: string,
  target: string,
  contentType: string,
  body: Buffer,
  limits: RequestLimits = DEFAULT_LIMITS,
): RequestShape {
  if (body.length > limits.maxBodyBytes) throw bodyTooLarge(limits.maxBodyBytes);
  const api = apiKindOf(method, target);
  if (/^\s*multipart\/form-data\b/i.test(contentType)) {
    if (api !== "audio" && api !== "other") throw unsupportedMediaType("This API takes JSON, not a form.");
    return readMultipartRequest(api, contentType, body);
  }
  if (api === "audio") throw unsupportedMediaType("This API takes a multipart/form-data body.");
  const hasMark = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  const start = skipSpace(body, hasMark ? 3 : 0);
  // Whatever the content type says: some engines read any body as JSON, so its fields have to be looked at.
  if (body[start] === OPEN_BRACE) return readJsonRequest(api, body, start);
  if (api !== "other") throw invalidJson("an object was expected", start);
  return plainShape(api, "none");
}
