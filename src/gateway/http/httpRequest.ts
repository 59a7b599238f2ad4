import { headerValue } from "#src/dispatch/headers.ts";
import type { HeaderList } from "#src/dispatch/headers.ts";

/** What is known of a request before its body. */
export class HttpHead {
  readonly method: string;
  /** Origin form: path and query; whatever authority an absolute form named is gone. */
  readonly target: string;
  /** As sent: flat, in order, hop-by-hop ones included. */
  readonly headers: HeaderList;
  readonly remoteAddress: string;
  /** Null: chunked, so unknown. */
  readonly bodyBytes: number | null;
  /** When its head was complete, on the server's clock. */
  readonly arrivedMs: number;

  constructor(made: {
    method: string;
    target: string;
    headers: HeaderList;
    remoteAddress: string;
    bodyBytes: number | null;
    arrivedMs: number;
  }) {
    this.method = made.method;
    this.target = made.target;
    this.headers = made.headers;
    this.remoteAddress = made.remoteAddress;
    this.bodyBytes = made.bodyBytes;
    this.arrivedMs = made.arrivedMs;
  }

  /** First value of a header, by lower-case name. */
  header(name: string): string | null {
    return headerValue(this.headers, name);
  }
}

/** A whole request. */
export interface HttpRequest {
  readonly head: HttpHead;
  readonly body: Buffer;
  /**
   * Says that nothing will look at `body` again, sockets included: its memory is then used for the next request. Not to
   * be called when in doubt; without it the garbage collector does the work.
   */
  readonly release: () => void;
}
