import { Publisher, Subscriber } from "zeromq";
import type { Engine } from "./kit/engine.ts";

/** A network between an engine's events and the router that loses what it is told to lose. */
export class LossyEvents implements AsyncDisposable {
  /** Batches that still get lost. */
  toLose = 0;
  lost = 0;
  passed = 0;
  address = "";
  readonly #from = new Subscriber({ linger: 0 });
  readonly #to = new Publisher({ linger: 0 });
  #loop: Promise<void> = Promise.resolve();

  static async before(engine: Engine): Promise<LossyEvents> {
    const lossy = new LossyEvents();
    await lossy.#to.bind("tcp://127.0.0.1:*");
    lossy.address = lossy.#to.lastEndpoint ?? "";
    lossy.#from.connect(engine.events);
    lossy.#from.subscribe();
    lossy.#loop = lossy.#carry();
    return lossy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#from.close();
    await this.#loop;
    this.#to.close();
  }

  async #carry(): Promise<void> {
    try {
      for await (const frames of this.#from) {
        if (this.toLose > 0) {
          this.toLose--;
          this.lost++;
          continue;
        }
        this.passed++;
        await this.#to.send(frames);
      }
    } catch (caught) {
      if (!this.#from.closed) throw caught;
    }
  }
}
