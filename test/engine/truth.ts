import { createHash } from "node:crypto";
import { unpack } from "msgpackr";
import { Dealer, Subscriber } from "zeromq";
import type { Engine } from "./kit/engine.ts";

/** What a prompt's blocks depend on besides its tokens. */
export interface Kind {
  readonly adapter?: string;
  readonly salt?: string;
}

interface Stored {
  readonly type: "BlockStored";
  readonly block_hashes: readonly (number | bigint)[];
  readonly parent_block_hash: number | bigint | null;
  readonly token_ids: readonly number[];
  readonly block_size: number;
  readonly extra_keys: readonly (readonly unknown[] | null)[] | null;
}

interface Removed {
  readonly type: "BlockRemoved";
  readonly block_hashes: readonly (number | bigint)[];
}

type EngineEvent = Stored | Removed | { readonly type: "AllBlocksCleared" };

interface Held {
  /** Of everything that the block depends on, back to the start of the prompt. */
  readonly content: string;
  copies: number;
}

/**
 * What one engine holds, by a subscriber that has nothing in common with the router's: its own sockets, another decoder,
 * other hashes. Replay and subscription are joined by sequence number, and it throws at any gap.
 */
export class Truth implements AsyncDisposable {
  readonly engine: Engine;
  seq = -1;
  clears = 0;
  storedBlocks = 0;
  removedBlocks = 0;
  readonly #byHandle = new Map<string, Held>();
  /** Handles by content. */
  readonly #held = new Map<string, number>();
  readonly #subscriber = new Subscriber({ linger: 0 });
  #failure: Error | null = null;
  #loop: Promise<void> = Promise.resolve();

  static async of(engine: Engine): Promise<Truth> {
    const truth = new Truth(engine);
    truth.#subscriber.connect(engine.events);
    truth.#subscriber.subscribe(engine.topic);
    // The subscription has to stand before the past is asked for, and nothing says when it does but a message.
    await new Promise((resolve) => setTimeout(resolve, 500));
    await truth.#replay();
    truth.#loop = truth.#follow();
    return truth;
  }

  private constructor(engine: Engine) {
    this.engine = engine;
  }

  /** Distinct blocks. */
  get blocks(): number {
    this.#check();
    return this.#held.size;
  }

  /** Leading blocks of a prompt that are held. */
  heldOf(tokenIds: readonly number[], kind: Kind = {}): number {
    this.#check();
    const { blockTokens } = this.engine;
    let parent = "";
    for (let block = 0; (block + 1) * blockTokens <= tokenIds.length; block++) {
      const extra: string[] = kind.adapter === undefined ? [] : [kind.adapter];
      if (block === 0 && kind.salt !== undefined) extra.push(kind.salt);
      parent = contentOf(parent, tokenIds.slice(block * blockTokens, (block + 1) * blockTokens), extra);
      if (!this.#held.has(parent)) return block;
    }
    return Math.floor(tokenIds.length / blockTokens);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscriber.close();
    await this.#loop;
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  async #replay(): Promise<void> {
    const dealer = new Dealer({ linger: 0, receiveTimeout: 10_000 });
    dealer.connect(this.engine.replay);
    try {
      await dealer.send([Buffer.alloc(0), Buffer.alloc(8)]);
      for (;;) {
        const [, , seq, payload] = await dealer.receive();
        if (seq === undefined || payload === undefined || payload.length === 0) return;
        this.#batch(Number(seq.readBigUInt64BE()), payload);
      }
    } finally {
      dealer.close();
    }
  }

  async #follow(): Promise<void> {
    try {
      for await (const [, seq, payload] of this.#subscriber) {
        const number = Number(seq!.readBigUInt64BE());
        if (number > this.seq) this.#batch(number, payload!);
      }
    } catch (caught) {
      if (!this.#subscriber.closed) this.#failure = caught instanceof Error ? caught : new Error(String(caught));
    }
  }

  #batch(seq: number, payload: Buffer): void {
    if (seq !== this.seq + 1) throw new Error(`batch ${seq} came after ${this.seq}: the ground truth has a gap`);
    this.seq = seq;
    const [, events] = unpack(payload) as [number, readonly EngineEvent[]];
    for (const event of events) this.#event(event);
  }

  #event(event: EngineEvent): void {
    if (event.type === "AllBlocksCleared") {
      this.clears++;
      this.#byHandle.clear();
      this.#held.clear();
    } else if (event.type === "BlockRemoved") {
      for (const handle of event.block_hashes) this.#remove(String(handle));
    } else this.#store(event);
  }

  #store({ block_hashes: handles, parent_block_hash, token_ids: ids, block_size: size, extra_keys: extras }: Stored) {
    let parent = parent_block_hash === null ? "" : this.#byHandle.get(String(parent_block_hash))?.content;
    if (parent === undefined) throw new Error(`a block was stored after ${parent_block_hash}, which is not there`);
    for (const [at, handle] of handles.entries()) {
      parent = contentOf(parent, ids.slice(at * size, (at + 1) * size), extras?.[at] ?? []);
      const known = this.#byHandle.get(String(handle));
      this.storedBlocks++;
      if (known !== undefined) known.copies++;
      else {
        this.#byHandle.set(String(handle), { content: parent, copies: 1 });
        this.#held.set(parent, (this.#held.get(parent) ?? 0) + 1);
      }
    }
  }

  #remove(handle: string): void {
    const held = this.#byHandle.get(handle);
    if (held === undefined) throw new Error(`a block was removed that is not there: ${handle}`);
    this.removedBlocks++;
    if (--held.copies > 0) return;
    this.#byHandle.delete(handle);
    const others = this.#held.get(held.content)! - 1;
    if (others === 0) this.#held.delete(held.content);
    else this.#held.set(held.content, others);
  }
}

function contentOf(parent: string, tokenIds: readonly number[], extra: readonly unknown[]): string {
  return createHash("sha256")
    .update(`${parent}|${tokenIds.join()}|${JSON.stringify(extra)}`)
    .digest("base64");
}
