/** Copied in one go, about 0.1 ms; between two slices the event loop has its turn. */
const SLICE_BYTES = 1024 * 1024;

/** Copies `from` to the start of `to`. Resolves at once if it is small; the source must stay as it is until then. */
export async function copyInSlices(from: Buffer, to: Buffer): Promise<void> {
  for (let at = 0; at < from.length; at += SLICE_BYTES) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve));
    from.copy(to, at, at, Math.min(from.length, at + SLICE_BYTES));
  }
}
