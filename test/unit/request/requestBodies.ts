import assert from "node:assert/strict";
import { type ErrorCode, RouterError } from "#src/errors/routerError.ts";
import { identify, type IdentifyOptions } from "#src/request/identify.ts";
import type { Identity } from "#src/request/identity.ts";
import { readRequest } from "#src/request/readRequest.ts";
import type { RequestShape } from "#src/request/requestShape.ts";
import { editsFor, type Rewrite, spliceBody } from "#src/request/splice.ts";

export const CHAT = "/v1/chat/completions";
export const COMPLETIONS = "/v1/completions";

export function bytesOf(body: unknown): Buffer {
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

/** Reads a JSON body: an object to be written, or its text as it is. */
export function read(path: string, body: unknown): RequestShape {
  return readRequest("POST", path, "application/json", bytesOf(body));
}

export function identityOf(path: string, body: unknown, options: Partial<IdentifyOptions> = {}): Identity {
  const bytes = bytesOf(body);
  const shape = readRequest("POST", path, "application/json", bytes);
  return identify(shape, bytes, { bytesPerToken: 4, adapter: null, salt: null, ...options });
}

/** The body as an engine would get it. */
export function rewritten(path: string, body: unknown, rewrite: Rewrite = {}): string {
  const bytes = bytesOf(body);
  const shape = readRequest("POST", path, "application/json", bytes);
  return Buffer.concat(spliceBody(bytes, editsFor(shape, rewrite))).toString();
}

export function throwsCode(run: () => unknown, code: ErrorCode, message?: RegExp): void {
  assert.throws(run, (error) => {
    assert.ok(error instanceof RouterError);
    assert.equal(error.code, code);
    assert.equal(error.fault, "client");
    assert.ok(error.httpStatus >= 400 && error.httpStatus < 500);
    if (message !== undefined) assert.match(error.message, message);
    return true;
  });
}

/** Leading hashes that two identities share. */
export function sharedBlocks(a: Identity, b: Identity): number {
  let shared = 0;
  while (shared < a.hashes.length && shared < b.hashes.length && a.hashes[shared] === b.hashes[shared]) shared++;
  return shared;
}

export function prose(bytes: number, seed = 0): string {
  let text = "";
  for (let line = seed; text.length < bytes; line++) {
    text += `Line ${line}: the replica said "${(line * 7919) % 1009}" and\nwent on — ü.\n`;
  }
  return text;
}
