/** kernel.wat, assembled. The unit tests hold its results against other implementations. */
const MODULE_BASE64 = [
  "AGFzbQEAAAABFANgAn5+AX5gBH9/f38AYAJ/fwF/AwUEAAABAgUDAQAEByEDBm1lbW9yeQIABWNoYWluAAIMY2xvc2luZ1F1b3RlAAMK9gMEIQAg",
  "ACABQs/W077Sx6vZQn58Qh+JQoeVr6+Ytt6bnn9+CyMAIABCACABEACFQoeVr6+Ytt6bnn9+QuPcypX8zvL1hX98C54CAgF/Bn4CQANAIAFFDQEg",
  "A0EIaykDACEFIAVC1uuC7ur9ifXgAHwhByAFQs/W077Sx6vZQnwhCCAFIQkgBUKHla+vmLbem55/fSEKIAAgAmohBANAIAcgACkDABAAIQcgCCAA",
  "KQMIEAAhCCAJIAApAxAQACEJIAogACkDGBAAIQogAEEgaiEAIAAgBEkNAAsgB0IBiSAIQgeJfCAJQgyJIApCEol8fCEGIAYgBxABIQYgBiAIEAEh",
  "BiAGIAkQASEGIAYgChABIQYgBiACrXwhBiAGIAZCIYiFQs/W077Sx6vZQn4hBiAGIAZCHYiFQvnz3fGZ9pmrFn4hBiAGIAZCIIiFIQYgAyAGNwMA",
  "IANBCGohAyABQQFrIQEMAAsLC40BAQR/IAAhAgJAA0AgACABTw0BIAD9AAQAQSL9D/0j/WQhAwJAA0AgA0UNASAAIANoaiEEIAQgAU8NAyAEIQUC",
  "QANAIAUgAk0NASAFQQFrLQAAQdwARw0BIAVBAWshBQwACwsgBCAFa0EBcUUEQCAEDwsgAyADQQFrcSEDDAALCyAAQRBqIQAMAAsLIAEL",
].join("");

/** The part of WebAssembly's interface that is used here; Node's own types leave it out. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** Inner loops that JavaScript has no 64-bit integers or vectors for. Addresses are bytes of `memory`; see kernel.wat. */
interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer };
  chain(at: number, chunks: number, chunkBytes: number, out: number): void;
  closingQuote(at: number, end: number): number;
}

export const kernel = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(MODULE_BASE64, "base64")))
  .exports as Kernel;

/** The kernel's memory. It never grows, so views of it stay valid. */
export const kernelMemory = Buffer.from(kernel.memory.buffer);

/** Who works where in that memory: chainHash.ts from the start, jsonString.ts at the end. */
export const STRING_WINDOW_BYTES = 16 * 1024;
export const STRING_WINDOW_AT = kernelMemory.length - STRING_WINDOW_BYTES - 16;
