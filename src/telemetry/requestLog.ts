import { destination, pino, stdTimeFunctions } from "pino";
import type { DestinationStream, Level, Logger } from "pino";
import { recordFields } from "./requestRecord.ts";
import type { RequestRecord } from "./requestRecord.ts";

/** Lines are handed to the system in pieces of this size, or after this time. */
const BUFFER_BYTES = 16 * 1024;
const FLUSH_MS = 250;
/** What may wait for a slow disk or terminal; past it lines are dropped, requests are not. */
const MAX_BUFFER_BYTES = 16 * 1024 * 1024;

/** Wherever these stand in what is logged besides requests, their values stay out. */
const SECRET_KEYS = ["authorization", "apiKey", "api_key", "x-api-key", "key", "token", "password", "secret", "cookie"];

export interface RequestLogOptions {
  /** A path, or 1 for standard output (the default). A stream of its own for tests. */
  readonly destination?: string | number | DestinationStream;
  readonly level?: Level | "silent";
}

/** One JSON line per request, and one per event that an operator must hear of. */
export class RequestLog {
  readonly #requests: Logger;
  readonly #events: Logger;
  readonly #close: () => Promise<void>;

  constructor(options: RequestLogOptions = {}) {
    const to = options.destination ?? 1;
    const level = options.level ?? "info";
    let stream: DestinationStream;
    if (typeof to === "object") {
      stream = to;
      this.#close = () => Promise.resolve();
    } else {
      const file = destination({
        dest: to,
        sync: false,
        minLength: BUFFER_BYTES,
        maxLength: MAX_BUFFER_BYTES,
        periodicFlush: FLUSH_MS,
      });
      stream = file;
      this.#close = () => closed(file);
    }
    const base = { base: null, level, timestamp: stdTimeFunctions.isoTime };
    // Redaction costs at every line; a request's line has a closed list of fields and needs none.
    this.#requests = pino(base, stream);
    this.#events = pino({ ...base, redact: { paths: secretPaths(), censor: "[secret]" } }, stream);
  }

  request(record: RequestRecord): void {
    this.#requests.info(recordFields(record));
  }

  /** Something other than a request: a replica came or went, a file was reloaded, a condition was raised. */
  event(level: Level, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#events[level](fields, message);
  }

  /** Resolves when everything was written. */
  close(): Promise<void> {
    return this.#close();
  }
}

function secretPaths(): string[] {
  const quoted = SECRET_KEYS.map((key) => `["${key}"]`);
  return quoted.flatMap((key) => [key, `*${key}`, `*.*${key}`]);
}

function closed(file: ReturnType<typeof destination>): Promise<void> {
  return new Promise((resolve) => {
    file.once("close", resolve);
    file.once("error", () => resolve());
    file.end();
  });
}
