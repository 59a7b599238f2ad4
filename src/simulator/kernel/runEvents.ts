import type { EventQueue } from "./eventQueue.ts";

/** A world that moves through time by events. */
export interface MovedWorld {
  nowMs: number;
}

/** Called after every so many events. */
const REPORT_EVERY = 1 << 16;

/** Handles events in order, and what follows from them, until none is left. Returns how many there were. */
export function runEvents<World extends MovedWorld>(
  world: World,
  queue: EventQueue<World>,
  onProgress: () => void = () => undefined,
): number {
  let handled = 0;
  for (let event = queue.pop(); event !== null; event = queue.pop()) {
    if (event.atMs > world.nowMs) world.nowMs = event.atMs;
    for (const consequence of event.handle(world)) queue.push(consequence);
    if (++handled % REPORT_EVERY === 0) onProgress();
  }
  return handled;
}
