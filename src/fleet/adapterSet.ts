/** Used when the engine does not say how many adapters it keeps in GPU memory (vLLM's default is 1). */
const ASSUMED_MAX_RESIDENT = 1;

/** The LoRA adapters of one replica: which it can load at all, and which are in GPU memory now. */
export class AdapterSet {
  #loadable: ReadonlySet<string> = new Set();
  /** In order of use, latest last. Scraped where published, else modelled from own traffic. */
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

  /** Whether `resident` is what the engine said, or modelled. */
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

  /** What a scrape says; null where it says nothing. Known order of use is kept. */
  setResident(names: readonly string[] | null, maxResident: number | null): void {
    if (maxResident !== null && maxResident > 0) this.#maxResident = maxResident;
    this.#published = names !== null;
    if (names === null) return;
    const now = new Set(names);
    const kept = [...this.#resident].filter((name) => now.has(name));
    this.#resident = new Set([...kept, ...names]);
  }

  /** A request for this adapter was placed: it is, or will be, in memory, and the least recently used one is not. */
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
