import type { Clock } from "../determinism/clock.ts";
import type { Cancel, Timers } from "../determinism/timers.ts";

/**
 * Runs `task` every `intervalMs`, the first time after `firstMs`. Never twice at once: a task that takes longer than
 * the interval is followed at once by the next, and the beats it slept through are skipped.
 */
export function every(
  { clock, timers }: { clock: Clock; timers: Timers },
  { intervalMs, firstMs }: { intervalMs: number; firstMs: number },
  task: () => Promise<void>,
): Cancel {
  let stopped = false;
  let cancel = timers.after(firstMs, () => void beat());

  async function beat(): Promise<void> {
    const startedMs = clock.nowMs();
    await task();
    if (stopped) return;
    cancel = timers.after(Math.max(0, startedMs + intervalMs - clock.nowMs()), () => void beat());
  }

  return () => {
    stopped = true;
    cancel();
  };
}
