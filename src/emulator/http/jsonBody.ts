import { badRequest, invalidBody } from "./vllmError.ts";

/** A request body as a JSON object. */
export type JsonBody = Readonly<Record<string, unknown>>;

/** Throws VllmError: another content type, no JSON, no object. */
export function parseJsonBody(contentType: string | undefined, body: Buffer): JsonBody {
  if (!(contentType ?? "").toLowerCase().includes("json"))
    throw invalidBody("Unsupported Media Type: Only 'application/json' is allowed", null);
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    const position = /position (\d+)/.exec(reason)?.[1] ?? "0";
    const loc = `body.${position}`;
    throw invalidBody(
      `{'type': 'json_invalid', 'loc': '${loc}', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': '${reason}'}}`,
      loc,
    );
  }
  if (!isObject(value))
    throw invalidBody(
      `{'type': 'model_attributes_type', 'loc': 'body', 'msg': 'Input should be a valid dictionary'}`,
      "body",
    );
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function missingField(field: string, body: JsonBody): Error {
  const detail = `{'type': 'missing', 'loc': 'body.${field}', 'msg': 'Field required', 'input': '<dict of ${Object.keys(body).length} items>'}`;
  return invalidBody(detail, `body.${field}`);
}

/** A number, null where the field is absent or null. Throws VllmError for anything else. */
export function numberField(body: JsonBody, field: string): number | null {
  const value = body[field];
  if (value === undefined || value === null) return null;
  if (typeof value === "number") return value;
  const parsed = typeof value === "string" ? ", unable to parse string as a number" : "";
  throw invalidBody(
    `{'type': 'float_parsing', 'loc': 'body.${field}', 'msg': 'Input should be a valid number${parsed}', 'input': ${pythonRepr(value)}}`,
    `body.${field}`,
  );
}

function pythonRepr(value: unknown): string {
  return JSON.stringify(value).replaceAll('"', "'");
}

export function stringField(body: JsonBody, field: string): string | null {
  const value = body[field];
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return value;
  throw invalidBody(
    `{'type': 'string_type', 'loc': 'body.${field}', 'msg': 'Input should be a valid string'}`,
    `body.${field}`,
  );
}

export function isTrue(value: unknown): boolean {
  return value === true;
}

/** `stop` and its siblings: a string or a list of them. */
export function stringList(body: JsonBody, field: string): readonly string[] {
  const value = body[field];
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [value];
  if (Array.isArray(value) && value.every((entry) => typeof entry === "string")) return value;
  throw badRequest(`${field} must be a string or a list of strings. (parameter=${field})`, field);
}
