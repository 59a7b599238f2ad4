/** Used when the engine does not say how many adapters it keeps in GPU memory (vLLM's default is 1). */
const ASSUMED_MAX_RESIDENT = 1;

/** The LoRA adapters of one replica: which it can load at all, and which are in GPU memory now. */
export class AdapterSet {
  #loadable: ReadonlySet<string> = new Set();
  /** In order of use, latest last: modelled from own traffic, and from what scrapes show in use. */
  #resident = new Set<string>();
  #maxResident = ASSUMED_MAX_RESIDENT;
  #published = false;

  get loadable(): ReadonlySet<string> {
    return this.#loadable;
  }

  get resident(): ReadonlySet<string> {
    return this.#resident;
  }

  get maxResident(): number {
    return this.#maxResident;
  }

  /** Whether the engine's own word went into `resident`. */
  get basis(): "metrics" | "modelled" {
    return this.#published ? "metrics" : "modelled";
  }

  canServe(adapter: string): boolean {
    return this.#loadable.has(adapter);
  }

  isResident(adapter: string): boolean {
    return this.#resident.has(adapter);
  }

  /** The adapter that loading another one would push out; null while there is room. */
  get victim(): string | null {
    if (this.#resident.size < this.#maxResident) return null;
    return this.#resident.values().next().value ?? null;
  }

  /** The engine's own list of adapters. */
  setLoadable(names: Iterable<string>): void {
    this.#loadable = new Set(names);
    for (const name of this.#resident) if (!this.#loadable.has(name)) this.#resident.delete(name);
  }

  /**
   * The adapters that a scrape names; null where it says nothing. An engine names those in use: one that is idle stays
   * in memory until another takes its place.
   */
  setInUse(names: readonly string[] | null, maxResident: number | null): void {
    if (maxResident !== null && maxResident > 0) this.#maxResident = maxResident;
    this.#published = names !== null;
    for (const name of names ?? []) this.used(name);
    for (const name of this.#resident) {
      if (this.#resident.size <= this.#maxResident) break;
      this.#resident.delete(name);
    }
  }

  /** It is, or will be, in memory, and the least recently used one is not. */
  used(adapter: string): void {
    if (!this.#resident.delete(adapter)) {
      const victim = this.victim;
      if (victim !== null) this.#resident.delete(victim);
    }
    this.#resident.add(adapter);
  }

  /** A restarted engine has loaded none. */
  restarted(): void {
    this.#resident.clear();
  }
}
