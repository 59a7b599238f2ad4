/** How a response body is framed towards the client. */
export type Framing = "chunked" | "length" | "none";

/**
 * The client's side of an exchange, as dispatch sees it; the gateway implements it over a real response.
 * Headers are flat name/value pairs, hop-by-hop headers already dropped.
 */
export interface Downstream {
  /** False once the client has gone or the answer has ended. */
  readonly open: boolean;
  /** True once status and headers went out: from then on no retry. */
  readonly started: boolean;
  start(status: number, headers: readonly string[], framing: Framing): void;
  /** Body bytes, already unframed. Returns false when the client is slower than the engine: wait for `onDrain`. */
  write(bytes: Uint8Array): boolean;
  end(): void;
  /** Ends the connection without a proper end of the body, so that the client cannot take it for complete. */
  destroy(): void;
  onDrain(listener: () => void): void;
  /** The client went away before the answer ended. Called at most once. */
  onGone(listener: () => void): void;
}
