import type { ReplayMessage } from "./frames.ts";

/** Bytes that all inboxes of a monitor may hold together. */
export class ByteBudget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  get leftBytes(): number {
    return this.#left;
  }

  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  give(bytes: number): void {
    this.#left += bytes;
  }
}

/**
 * Messages that were received and not yet told. What finds no room is dropped and counted: reading goes on, since
 * otherwise the engine would keep it in its own memory. The hole in the numbers is then found like any other.
 */
export class Inbox<Message extends ReplayMessage> {
  readonly #budget: ByteBudget;
  readonly #maxMessages: number;
  #messages: Message[] = [];
  #next = 0;
  droppedMessages = 0;

  constructor(budget: ByteBudget, maxMessages: number) {
    this.#budget = budget;
    this.#maxMessages = maxMessages;
  }

  get size(): number {
    return this.#messages.length - this.#next;
  }

  push(message: Message): boolean {
    // The end of a replay must not be lost to a full inbox: its time-out would be awaited for nothing.
    const fits =
      message === "end"
        ? this.#messages.at(-1) !== "end"
        : this.size < this.#maxMessages && this.#budget.take(bytesOf(message));
    if (fits) this.#messages.push(message);
    else this.droppedMessages++;
    return fits;
  }

  peek(): Message | undefined {
    return this.#messages[this.#next];
  }

  shift(): void {
    const message = this.#messages[this.#next];
    if (message === undefined) return;
    this.#budget.give(bytesOf(message));
    this.#next++;
    // Moving the rest to the front costs as much as was taken since the last time.
    if (this.#next * 2 >= this.#messages.length) {
      this.#messages = this.#messages.slice(this.#next);
      this.#next = 0;
    }
  }

  clear(): void {
    while (this.size > 0) this.shift();
  }
}

function bytesOf(message: ReplayMessage): number {
  return message === "end" ? 0 : message.payload.byteLength;
}
