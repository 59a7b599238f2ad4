/** Token ids that grow as they are found. Reused between prompts: `clear` keeps the memory. */
export class TokenWriter {
  #ids = new Uint32Array(4096);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  push(id: number): void {
    if (this.#length === this.#ids.length) this.#grow(this.#length + 1);
    this.#ids[this.#length++] = id;
  }

  pushAll(ids: Uint32Array): void {
    const end = this.#length + ids.length;
    if (end > this.#ids.length) this.#grow(end);
    this.#ids.set(ids, this.#length);
    this.#length = end;
  }

  /** A copy of what was written since `start`. */
  copy(start = 0): Uint32Array<ArrayBuffer> {
    return this.#ids.slice(start, this.#length);
  }

  #grow(atLeast: number): void {
    const larger = new Uint32Array(Math.max(atLeast, this.#ids.length * 2));
    larger.set(this.#ids.subarray(0, this.#length));
    this.#ids = larger;
  }
}
