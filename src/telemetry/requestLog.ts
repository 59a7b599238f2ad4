import { pino, stdTimeFunctions } from "pino";
import type { DestinationStream, Level, Logger } from "pino";
import { LineFile } from "./lineFile.ts";
import { requestLine } from "./requestRecord.ts";
import type { RequestRecord } from "./requestRecord.ts";

/** Wherever these stand in what is logged besides requests, their values stay out. */
const SECRET_KEYS = ["authorization", "apiKey", "api_key", "x-api-key", "key", "token", "password", "secret", "cookie"];

export interface RequestLogOptions {
  /** A path, or 1 for standard output (the default). A stream of its own for tests. */
  readonly destination?: string | number | DestinationStream;
  readonly level?: Level | "silent";
  /** The destination cannot be written (disk full, pipe closed). Requests go on without lines. */
  readonly onError?: (cause: Error) => void;
}

/** One JSON line per request, and one per event that an operator must hear of. */
export class RequestLog {
  readonly #stream: DestinationStream;
  readonly #events: Logger;
  readonly #logsRequests: boolean;
  readonly #file: LineFile | null;

  /** Throws if the destination is a path that cannot be opened. */
  constructor(options: RequestLogOptions = {}) {
    const to = options.destination ?? 1;
    this.#file = typeof to === "object" ? null : new LineFile(to, options.onError ?? (() => undefined));
    this.#stream = typeof to === "object" ? to : this.#file!;
    this.#events = pino(
      {
        base: null,
        level: options.level ?? "info",
        timestamp: stdTimeFunctions.isoTime,
        redact: { paths: secretPaths(), censor: "[secret]" },
      },
      this.#stream,
    );
    this.#logsRequests = this.#events.isLevelEnabled("info");
  }

  /** Lines that were given up because the destination was too slow or failed. */
  get dropped(): number {
    return this.#file?.dropped ?? 0;
  }

  request(record: RequestRecord): void {
    if (this.#logsRequests) this.#stream.write(requestLine(record, Date.now()));
  }

  /** Something other than a request: a replica came or went, a file was reloaded, a condition was raised. */
  event(level: Level, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#events[level](fields, message);
  }

  /** Resolves when everything was written. */
  async close(): Promise<void> {
    await this.#file?.close();
  }
}

function secretPaths(): string[] {
  const quoted = SECRET_KEYS.map((key) => `["${key}"]`);
  return quoted.flatMap((key) => [key, `*${key}`, `*.*${key}`]);
}
