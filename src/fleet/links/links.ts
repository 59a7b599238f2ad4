import type { ReplicaLabels } from "#src/discovery/replicaSpec.ts";
import { sharing } from "../topology.ts";
import type { SharedLevel } from "../topology.ts";
import { Channel } from "./channel.ts";
import { LevelModel } from "./levelModel.ts";
import { Link } from "./link.ts";
import { bytesPerMs, LINK_KINDS } from "./linkKinds.ts";
import type { LinkKind, LinkKinds, SharedBy } from "./linkKinds.ts";

/** One end of a link. The fleet's `Replica` is one as it stands. */
export interface LinkEnd {
  readonly id: string;
  readonly index: number;
  readonly labels: ReplicaLabels;
}

/** What an operator says of links and of the KV of models. */
export interface LinkSettings {
  readonly kinds: { readonly [Level in SharedLevel]?: GivenKind | undefined };
  /** By model, of one token, all layers together. */
  readonly kvBytesPerToken: ReadonlyMap<string, number>;
}

type GivenKind = { readonly [Key in keyof LinkKind]?: LinkKind[Key] | undefined };

interface Made {
  readonly link: Link;
  readonly to: LinkEnd;
  fromLabels: ReplicaLabels;
  toLabels: ReplicaLabels;
}

const LEVELS = ["nvlink", "host", "rack", "zone", "none"] as const satisfies readonly SharedLevel[];
const LABEL = { nvlink: "nvlinkDomain", host: "host", rack: "rack", zone: "zone" } as const;

/** KV of a token of an 8B model with grouped heads: 32 layers × 8 heads × 128 × two (K and V) × two bytes. */
export const ASSUMED_KV_BYTES_PER_TOKEN = 131_072;

/**
 * The links between replicas, made when they are first asked for. At most one per pair that is asked for; all of a replica
 * go with it.
 */
export class Links {
  #kinds: LinkKinds = LINK_KINDS;
  readonly #from = new Map<LinkEnd, (Made | undefined)[]>();
  readonly #channels = new Map<string, Channel>();
  #levels = levelModels(LINK_KINDS);
  #possible: readonly SharedLevel[] = LEVELS;
  #kvBytesPerToken: ReadonlyMap<string, number> = new Map();

  /** Links that are known, and the channels they share. */
  get size(): { readonly links: number; readonly channels: number } {
    let links = 0;
    for (const row of this.#from.values()) for (const made of row) if (made !== undefined) links++;
    return { links, channels: this.#channels.size };
  }

  /** What is not given is as it is by default. Where a kind of link changes, what was learned is void. */
  configure({ kinds, kvBytesPerToken }: LinkSettings = { kinds: {}, kvBytesPerToken: new Map() }): void {
    this.#kvBytesPerToken = kvBytesPerToken;
    const wanted = completed(kinds);
    if (JSON.stringify(wanted) === JSON.stringify(this.#kinds)) return;
    this.#kinds = wanted;
    this.#levels = levelModels(this.#kinds);
    this.#from.clear();
    this.#channels.clear();
  }

  /** Of one token's KV, all layers together. */
  kvBytesPerToken(model: string): number {
    return this.#kvBytesPerToken.get(model) ?? ASSUMED_KV_BYTES_PER_TOKEN;
  }

  /** Who there is to hand over, and to whom: to be called when either has changed. */
  members(from: readonly LinkEnd[], to: readonly LinkEnd[]): void {
    this.#possible = LEVELS.filter((level) => {
      if (level === "none") return true;
      const there = new Set(to.map(({ labels }) => labels[LABEL[level]]));
      return from.some(({ labels }) => labels[LABEL[level]] !== undefined && there.has(labels[LABEL[level]]));
    });
  }

  /** No link between members hands `bytes` over more quickly. */
  leastMs(bytes: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (const level of this.#possible) least = Math.min(least, this.#levels[level].leastMs(bytes));
    return least;
  }

  between(from: LinkEnd, to: LinkEnd): Link {
    const made = this.#from.get(from)?.[to.index];
    // An index is used again after its replica has left, and labels change with a reload.
    if (made !== undefined && made.to === to && made.fromLabels === from.labels && made.toLabels === to.labels)
      return made.link;
    return this.#make(from, to);
  }

  /** The replica has left. */
  forget(replica: LinkEnd): void {
    for (const made of this.#from.get(replica) ?? []) if (made !== undefined) this.#drop(made);
    this.#from.delete(replica);
    for (const row of this.#from.values()) {
      const made = row[replica.index];
      if (made === undefined || made.to !== replica) continue;
      this.#drop(made);
      row[replica.index] = undefined;
    }
  }

  #make(from: LinkEnd, to: LinkEnd): Link {
    const row = this.#from.get(from) ?? [];
    this.#from.set(from, row);
    const before = row[to.index];
    if (before !== undefined) {
      if (before.to === to && sameLabels(before.fromLabels, from.labels) && sameLabels(before.toLabels, to.labels)) {
        before.fromLabels = from.labels;
        before.toLabels = to.labels;
        return before.link;
      }
      this.#drop(before);
    }
    const level = sharing(from.labels, to.labels);
    const kind = this.#kinds[level];
    const out = this.#channel(level, "out", portOf(from, kind.sharedBy));
    const into = this.#channel(level, "in", portOf(to, kind.sharedBy));
    const link = new Link(level, { out, into }, this.#levels[level]);
    row[to.index] = { link, to, fromLabels: from.labels, toLabels: to.labels };
    return link;
  }

  #channel(level: SharedLevel, side: "out" | "in", port: string): Channel {
    const key = `${level} ${side} ${port}`;
    const channel = this.#channels.get(key) ?? new Channel(this.#levels[level].bytesPerMs);
    this.#channels.set(key, channel);
    channel.links++;
    return channel;
  }

  #drop({ link }: Made): void {
    for (const channel of [link.out, link.into]) {
      channel.links--;
      if (channel.links > 0) continue;
      for (const [key, one] of this.#channels) if (one === channel) this.#channels.delete(key);
    }
  }
}

function completed(kinds: LinkSettings["kinds"]): LinkKinds {
  const one = (level: SharedLevel): LinkKind => {
    const usual = LINK_KINDS[level];
    const given = kinds[level];
    return {
      gigabytesPerSecond: given?.gigabytesPerSecond ?? usual.gigabytesPerSecond,
      latencyMs: given?.latencyMs ?? usual.latencyMs,
      sharedBy: given?.sharedBy ?? usual.sharedBy,
    };
  };
  return Object.fromEntries(LEVELS.map((level) => [level, one(level)])) as unknown as LinkKinds;
}

function sameLabels(a: ReplicaLabels, b: ReplicaLabels): boolean {
  return a.nvlinkDomain === b.nvlinkDomain && a.host === b.host && a.rack === b.rack && a.zone === b.zone;
}

/** Whose port it is; where a label is missing, the next smaller thing that is known. */
function portOf({ id, labels }: LinkEnd, by: SharedBy): string {
  const steps: readonly (readonly [SharedBy, string | undefined])[] = [
    ["zone", labels.zone],
    ["rack", labels.rack],
    ["host", labels.host],
  ];
  const from = steps.findIndex(([name]) => name === by);
  if (from >= 0) for (const [name, label] of steps.slice(from)) if (label !== undefined) return `${name}:${label}`;
  return `replica:${id}`;
}

function levelModels(kinds: LinkKinds): Readonly<Record<SharedLevel, LevelModel>> {
  const made = LEVELS.map((level) => [level, new LevelModel(kinds[level].latencyMs, bytesPerMs(kinds[level]))]);
  return Object.fromEntries(made) as Record<SharedLevel, LevelModel>;
}
