/** LoRA adapters in GPU memory: at most `slots`, least recently used out first; one that runs is never pushed out. */
export class AdapterSlots {
  readonly #slots: number;
  /** Running sequences of each resident adapter; least recently used first. */
  readonly #running = new Map<string, number>();
  #loads = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  get resident(): readonly string[] {
    return [...this.#running.keys()];
  }

  get loads(): number {
    return this.#loads;
  }

  /** Whether a sequence of this adapter can join the batch now. */
  admits(adapter: string): boolean {
    if (this.#running.has(adapter) || this.#running.size < this.#slots) return true;
    for (const sequences of this.#running.values()) if (sequences === 0) return true;
    return false;
  }

  /** Counts a sequence that joins the batch; true if its adapter has to be loaded for it. */
  enter(adapter: string): boolean {
    const sequences = this.#running.get(adapter);
    if (sequences !== undefined) {
      this.#running.delete(adapter);
      this.#running.set(adapter, sequences + 1);
      return false;
    }
    if (this.#running.size >= this.#slots) this.#evict();
    this.#running.set(adapter, 1);
    this.#loads++;
    return true;
  }

  leave(adapter: string): void {
    const sequences = this.#running.get(adapter);
    if (sequences !== undefined) this.#running.set(adapter, sequences - 1);
  }

  /** Drops an adapter that was unloaded, if nothing runs with it. */
  unload(adapter: string): void {
    if (this.#running.get(adapter) === 0) this.#running.delete(adapter);
  }

  #evict(): void {
    for (const [adapter, sequences] of this.#running) {
      if (sequences > 0) continue;
      this.#running.delete(adapter);
      return;
    }
  }
}
