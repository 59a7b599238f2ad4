// A client whose every move a test decides.
import { connect } from "node:net";
import type { Socket } from "node:net";
import { post } from "../dispatchRig.ts";
import { MODEL } from "../gatewaySetup.ts";

/** A connection of its own for one request, of which it may read all, a part, or nothing. */
export class Client {
  readonly socket: Socket;
  text = "";
  /** The connection ended, in whatever way. */
  readonly closed: Promise<void>;

  constructor(url: string, bytes: string | Buffer) {
    this.socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", noDelay: true });
    this.socket.on("data", (data: Buffer) => (this.text += data.toString("latin1")));
    this.socket.on("error", () => {});
    this.closed = new Promise((resolve) => this.socket.once("close", () => resolve()));
    this.socket.write(bytes);
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d+)/.exec(this.text)?.[1] ?? 0);
  }

  /** Resolves when what has come so far satisfies, or when nothing more will come. */
  async sees(enough: (text: string) => boolean): Promise<void> {
    const seen = new Promise<void>((resolve) => {
      this.socket.on("data", () => {
        if (enough(this.text)) resolve();
      });
    });
    if (!enough(this.text)) await Promise.race([seen, this.closed]);
  }

  /** Goes away as a killed process does. */
  leave(): void {
    this.socket.destroy();
  }
}

/** The bytes of a chat request. */
export function chatBytes(more: Record<string, unknown> = {}, headers = ""): string {
  const messages = [{ role: "user", content: "Say something." }];
  return post(JSON.stringify({ model: MODEL, messages, max_tokens: 8, ...more }), headers);
}
