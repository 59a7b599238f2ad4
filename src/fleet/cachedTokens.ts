import type { Identity } from "#src/request/identity.ts";
import { heldBlocks, type HeldBlocks } from "./blockIndex.ts";
import type { Fleet } from "./fleet.ts";
import type { Replica } from "./replica.ts";

/** What the candidates of a choice have cached of a prompt, in tokens. Arrays run parallel to the candidates of `read`. */
export class CachedTokens {
  /** Leading tokens that an engine will find in GPU memory. */
  gpu = new Float64Array(64);
  /** In GPU or host memory. */
  host = new Float64Array(64);
  /** Anywhere. */
  disk = new Float64Array(64);
  /** In GPU memory, of all prompts together. */
  held = new Float64Array(64);
  #blocks: HeldBlocks = heldBlocks(64);

  read(fleet: Fleet, identity: Identity, candidates: readonly Replica[]): void {
    if (this.#blocks.gpu.length < fleet.indexBound) this.#blocks = heldBlocks(2 * fleet.indexBound);
    if (this.gpu.length < candidates.length) {
      this.gpu = new Float64Array(2 * candidates.length);
      this.host = new Float64Array(2 * candidates.length);
      this.disk = new Float64Array(2 * candidates.length);
      this.held = new Float64Array(2 * candidates.length);
    }
    const blocks = this.#blocks;
    fleet.index.match(identity.hashes, candidates, blocks, identity.approximate);
    for (let at = 0; at < candidates.length; at++) {
      const replica = candidates[at]!;
      const { index } = replica;
      const most = mostCached(identity, fleet.cacheBlockTokens(replica));
      const usable = identity.approximate ? 1 : fleet.cacheBlockTokens(replica);
      this.gpu[at] = hit(blocks.gpu[index]! * identity.blockTokens, usable, most);
      this.host[at] = hit(blocks.host[index]! * identity.blockTokens, usable, most);
      this.disk[at] = hit(blocks.disk[index]! * identity.blockTokens, usable, most);
      this.held[at] = fleet.index.heldTokens(index, identity.blockTokens);
    }
  }
}

/**
 * An engine computes the last token of a prompt in any case, and shares whole blocks: of 640 tokens in blocks of 16 it
 * finds at most 624. Where tokens are estimated from text, such precision would be feigned.
 */
function mostCached({ approximate, promptTokens }: Identity, blockTokens: number): number {
  return approximate ? promptTokens : wholeBlocks(promptTokens - 1, blockTokens);
}

function hit(heldTokens: number, blockTokens: number, most: number): number {
  return Math.max(0, Math.min(most, blockTokens === 1 ? heldTokens : wholeBlocks(heldTokens, blockTokens)));
}

function wholeBlocks(tokens: number, blockTokens: number): number {
  return Math.floor(tokens / blockTokens) * blockTokens;
}
