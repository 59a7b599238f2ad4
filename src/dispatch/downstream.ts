/** How a response body is framed towards the client. */
export type Framing = "chunked" | "length" | "none";

/**
 * The client's side of an exchange, as dispatch sees it; the gateway implements it over a real connection.
 * Headers are flat name/value pairs, hop-by-hop headers already dropped.
 */
export interface Downstream {
  /** False once the client has gone or the answer has ended. */
  readonly open: boolean;
  /** True once `start` was called: from then on no retry. */
  readonly started: boolean;
  start(status: number, headers: readonly string[], framing: Framing): void;
  /** Body bytes, unframed. They must stay as they are until `flush` or `end`. */
  write(bytes: Buffer, start?: number, end?: number): void;
  /**
   * Sends what was started and written since the last time, as one piece: once for all that one read brought. Returns
   * false when the client is slower than the engine: wait for `onDrain`.
   */
  flush(): boolean;
  /** Sends what is left and completes the answer. */
  end(): void;
  /** Ends the connection without a proper end of the body, so that the client cannot take it for complete. */
  destroy(): void;
  onDrain(listener: () => void): void;
  /** The client went away before the answer ended. Called at most once. */
  onGone(listener: () => void): void;
}
