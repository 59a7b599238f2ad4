/** What a client may send, and how long it may take. Every one has an answer of its own. */
export interface HttpLimits {
  /** Target, header names and values together: beyond, 431. */
  readonly maxHeaderBytes: number;
  readonly maxHeaderCount: number;
  /** Beyond, 413: from `Content-Length` before a byte of the body, else as soon as it is passed. */
  readonly maxBodyBytes: number;
  /** Of bodies that are being received or in hand, all together: beyond, 503. */
  readonly maxHeldBytes: number;
  /** From a connection's or request's first byte to the end of its headers: beyond, 408. */
  readonly headersMs: number;
  /** From a request's first byte to its last: beyond, 408. */
  readonly requestMs: number;
  /** Between two requests of a connection. */
  readonly keepAliveMs: number;
  readonly maxConnections: number;
}

export const HTTP_LIMITS: HttpLimits = {
  maxHeaderBytes: 32_768,
  maxHeaderCount: 128,
  maxBodyBytes: 64 * 1024 * 1024,
  maxHeldBytes: 1024 * 1024 * 1024,
  headersMs: 15_000,
  requestMs: 120_000,
  // Longer than a client's or a load balancer's usual 60 s, so that it is they who close.
  keepAliveMs: 75_000,
  maxConnections: 16_384,
};
