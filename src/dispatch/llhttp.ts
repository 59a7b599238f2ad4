import { createRequire } from "node:module";

/** The part of the platform's WebAssembly that is used; node has it, TypeScript's library without a DOM does not. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
};

/**
 * Node's HTTP parser, llhttp, as the WebAssembly build that undici ships. All framing, of clients and of engines, is
 * decided by it, in its strict mode. WebAssembly rather than node's native binding because a piece of a body then costs
 * one call and no allocation: the parser reports positions, and the caller slices its own buffer.
 */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(bytes: number): number;
  llhttp_alloc(kind: number): number;
  llhttp_free(parser: number): void;
  llhttp_execute(parser: number, data: number, length: number): number;
  llhttp_finish(parser: number): number;
  llhttp_resume(parser: number): void;
  llhttp_resume_after_upgrade(parser: number): void;
  llhttp_get_error_pos(parser: number): number;
  llhttp_get_error_reason(parser: number): number;
  llhttp_get_method(parser: number): number;
  llhttp_get_http_major(parser: number): number;
  llhttp_get_http_minor(parser: number): number;
}

/** What a parser calls while it runs. Names and values come in pieces, split wherever a read ended; Latin-1. */
export interface Callbacks {
  onBegin(): number;
  onTarget(piece: string): number;
  onHeaderName(piece: string): number;
  onHeaderValue(piece: string): number;
  onHeadersComplete(statusCode: number, keepAlive: boolean): number;
  onBody(bytes: Buffer, start: number, end: number): number;
  onComplete(): number;
}

/** Codes that llhttp returns, and that a callback may return. */
export const Code = { ok: 0, noBody: 1, paused: 21, pausedForUpgrade: 22, refused: 24 } as const;

const NOTHING = Buffer.alloc(0);
/** Bytes handed to llhttp at once; no socket read is larger. */
const SCRATCH_BYTES = 65_536;

let current: Callbacks | null = null;
let currentBytes: Buffer = NOTHING;
/** Position in `currentBytes` less position in the parser's memory. */
let currentShift = 0;

/** The parser that runs; calls come only from within `execute` and `finish`. */
function running(): Callbacks {
  if (current === null) throw new Error("llhttp called back while no parser ran");
  return current;
}

/** A stretch of `currentBytes` as Latin-1: decoding a head once and cutting it up is cheaper than decoding each name and value. */
let decoded = "";
let decodedFrom = 0;
const DECODE_BYTES = 1024;

function text(at: number, length: number): string {
  const from = at + currentShift - decodedFrom;
  if (from >= 0 && from + length <= decoded.length) return decoded.slice(from, from + length);
  decodedFrom = at + currentShift;
  decoded = currentBytes.toString("latin1", decodedFrom, decodedFrom + Math.max(length, DECODE_BYTES));
  return decoded.slice(0, length);
}

const require = createRequire(import.meta.url);
const wasm = new WebAssembly.Module(require("undici/lib/llhttp/llhttp_simd-wasm.js") as Buffer);
const exported = new WebAssembly.Instance(wasm, {
  env: {
    wasm_on_message_begin: () => running().onBegin(),
    wasm_on_url: (_: number, at: number, length: number) => running().onTarget(text(at, length)),
    wasm_on_status: () => Code.ok,
    wasm_on_header_field: (_: number, at: number, length: number) => running().onHeaderName(text(at, length)),
    wasm_on_header_value: (_: number, at: number, length: number) => running().onHeaderValue(text(at, length)),
    wasm_on_headers_complete: (_: number, status: number, _upgrade: number, keepAlive: number) =>
      running().onHeadersComplete(status, keepAlive === 1),
    wasm_on_body: (_: number, at: number, length: number) =>
      running().onBody(currentBytes, at + currentShift, at + currentShift + length),
    wasm_on_message_complete: () => running().onComplete(),
  },
}).exports as Exports;

const scratch = exported.malloc(SCRATCH_BYTES);
let memory = new Uint8Array(exported.memory.buffer);

const methodNames: readonly string[] = Object.entries(
  (require("undici/lib/llhttp/constants.js") as { METHODS: Record<string, number> }).METHODS,
).reduce<string[]>((names, [name, number]) => {
  names[number] = name;
  return names;
}, []);

/** A parser's state, outside the garbage collector: whoever allocates frees. */
export type ParserHandle = number;

export const llhttp = {
  allocate(kind: "request" | "response"): ParserHandle {
    return exported.llhttp_alloc(kind === "request" ? 1 : 2);
  },

  free(parser: ParserHandle): void {
    exported.llhttp_free(parser);
  },

  /** Parses `bytes[from, to)`. `used` is less than given where a callback paused it. */
  execute(
    parser: ParserHandle,
    callbacks: Callbacks,
    bytes: Buffer,
    from: number,
    to: number,
  ): { code: number; used: number } {
    // One buffer and one `current` serve all parsers, which is sound only as long as none runs inside another.
    if (current !== null) throw new Error("a parser was started from within a parser's callback");
    // Allocating a parser may grow the memory, which detaches the old view.
    if (memory.buffer !== exported.memory.buffer) memory = new Uint8Array(exported.memory.buffer);
    current = callbacks;
    currentBytes = bytes;
    decoded = "";
    try {
      for (let at = from; at < to; at += SCRATCH_BYTES) {
        const end = Math.min(to, at + SCRATCH_BYTES);
        memory.set(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end), scratch);
        currentShift = at - scratch;
        const code = exported.llhttp_execute(parser, scratch, end - at);
        if (code !== Code.ok) return { code, used: exported.llhttp_get_error_pos(parser) + currentShift - from };
      }
      return { code: Code.ok, used: to - from };
    } finally {
      current = null;
      currentBytes = NOTHING;
      decoded = "";
    }
  },

  /** The other side closed. */
  finish(parser: ParserHandle, callbacks: Callbacks): number {
    if (current !== null) throw new Error("a parser was finished from within a parser's callback");
    current = callbacks;
    try {
      return exported.llhttp_finish(parser);
    } finally {
      current = null;
    }
  },

  resume(parser: ParserHandle, code: number): void {
    if (code === Code.pausedForUpgrade) exported.llhttp_resume_after_upgrade(parser);
    else exported.llhttp_resume(parser);
  },

  errorReason(parser: ParserHandle): string {
    const at = exported.llhttp_get_error_reason(parser);
    if (at === 0) return "malformed";
    const bytes = new Uint8Array(exported.memory.buffer, at);
    return Buffer.from(bytes.subarray(0, bytes.indexOf(0))).toString("latin1");
  },

  method(parser: ParserHandle): string {
    return methodNames[exported.llhttp_get_method(parser)] ?? "";
  },

  /** HTTP/1.minor; null for any other major version. */
  minorVersion(parser: ParserHandle): number | null {
    return exported.llhttp_get_http_major(parser) === 1 ? exported.llhttp_get_http_minor(parser) : null;
  },
};
