import type { Downstream, Framing } from "../downstream.ts";

/** A prefill answer of a long prompt lists its blocks (or tokens): some bytes for each of a million of them. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Takes the answer of a prefill leg in the client's stead. */
export class PrefillAnswer implements Downstream {
  readonly open = true;
  started = false;
  /** The answer is longer than any prefill answer; its rest was not kept. */
  tooLong = false;
  headers: readonly string[] = [];
  status = 0;
  readonly #keep: boolean;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** @param keep false: nobody will read a good answer, so only a refusal is kept */
  constructor(keep: boolean) {
    this.#keep = keep;
  }

  get body(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  start(status: number, headers: readonly string[], _framing: Framing): void {
    this.started = true;
    this.status = status;
    this.headers = headers;
  }

  write(bytes: Buffer, start = 0, end = bytes.length): void {
    if (this.tooLong || (!this.#keep && this.status < 300)) return;
    this.#bytes += end - start;
    if (this.#bytes > MAX_BYTES) {
      this.tooLong = true;
      this.#pieces = [];
      return;
    }
    // The connection reads into the same memory again.
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
  }

  /** Gives a refusal to the client as if the engine had told him. */
  passTo(client: Downstream): void {
    const { body } = this;
    const headers = ["content-length", String(body.length)];
    for (let at = 0; at + 1 < this.headers.length; at += 2) {
      const name = this.headers[at]!;
      if (name.toLowerCase() !== "content-length") headers.push(name, this.headers[at + 1]!);
    }
    client.start(this.status, headers, "length");
    client.write(body);
    client.end();
  }

  flush(): boolean {
    return true;
  }

  end(): void {}

  destroy(): void {}

  onDrain(): void {}

  onGone(): void {}
}
