import { randomBytes, randomUUID } from "node:crypto";
import type { HandoffIds } from "#src/engines/handoff/handoff.ts";

const MASK = 2n ** 63n - 1n;

/** Numbers and ids by which the two legs of a hand-off meet. No client can say them. */
export class HandoffNumbers {
  /** Counted from a random start, so that no two of one router are equal, and those of two routers hardly ever. */
  #room = randomBytes(8).readBigUInt64BE() & MASK;

  /** @param requestId of the request: the first attempt's; a later one must not meet what is left of the first */
  next(requestId: string, attempt: number): HandoffIds {
    this.#room = (this.#room + 1n) & MASK;
    return { requestId: attempt === 1 ? requestId : randomUUID(), room: this.#room };
  }
}
