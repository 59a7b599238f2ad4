import type { Random } from "#src/determinism/random.ts";

/** Names with weights, e.g. `interactive:0.1,batch:0.9`. */
export interface Share {
  readonly name: string;
  readonly weight: number;
}

/** Draws one of the names by weight; null if there is none. */
export function draw(shares: readonly Share[], random: Random): string | null {
  const total = shares.reduce((sum, { weight }) => sum + weight, 0);
  let left = random.next() * total;
  for (const { name, weight } of shares) {
    left -= weight;
    if (left < 0) return name;
  }
  return shares.at(-1)?.name ?? null;
}

/** Who sends: drawn for each request that does not say itself. */
export interface Senders {
  readonly classes: readonly Share[];
  readonly tenants: readonly Share[];
  readonly adapters: readonly Share[];
}

export interface Sender {
  readonly className: string;
  readonly tenant: string;
  readonly adapter: string | null;
}

export function drawSender(senders: Senders, random: Random): Sender {
  return {
    className: draw(senders.classes, random) ?? "standard",
    tenant: draw(senders.tenants, random) ?? "anonymous",
    adapter: draw(senders.adapters, random),
  };
}
