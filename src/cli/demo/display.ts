import { setTimeout as sleep } from "node:timers/promises";
import { banner, screen, summaryLine, type DemoView } from "./screen.ts";

const REDRAW_MS = 500;
const LINE_EVERY_MS = 2_000;

/** Shows the view until `signal` aborts: redrawn in place on a terminal, a line now and then elsewhere. */
export async function display(
  view: () => Promise<DemoView>,
  out: NodeJS.WriteStream,
  signal: AbortSignal,
): Promise<void> {
  const first = await view();
  if (!out.isTTY) out.write(`${banner(first).join("\n")}\n`);
  while (!signal.aborted) {
    const now = await view();
    if (out.isTTY) {
      // 0 where a terminal does not know its width.
      const columns = out.columns || Number.POSITIVE_INFINITY;
      // Home, each line cleared to its end, then everything below: no flicker, and nothing left from a longer screen.
      out.write(
        `\u001b[H${screen(now, columns)
          .map((line) => `${fit(line, columns)}\u001b[K`)
          .join("\n")}\u001b[J`,
      );
    } else {
      out.write(`${summaryLine(now)}\n`);
    }
    await sleep(out.isTTY ? REDRAW_MS : LINE_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** The curl line may run over; everything else would break the picture. */
function fit(line: string, columns: number): string {
  return line.includes("curl ") ? line : line.slice(0, columns);
}
