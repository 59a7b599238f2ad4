import { watch, type FSWatcher } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { parse as parseYaml } from "yaml";
import type { Cancel, Timers } from "../determinism/timers.ts";
import { badEndpoint } from "./engineUrl.ts";
import { parseEndpoints } from "./parseEndpoint.ts";
import type { Source, SourceListener } from "./source.ts";

const MAX_FILE_BYTES = 4 * 1024 * 1024;

export interface FileSourceOptions {
  readonly path: string;
  readonly timers: Timers;
  /** Time between two looks without a notice: network file systems send none. */
  readonly everyMs?: number;
  /** A changed file is believed once it reads the same twice, this far apart: a half-written list can be a valid shorter one. */
  readonly settleMs?: number;
  readonly maxEndpoints?: number;
}

/**
 * A YAML or JSON file with a list of endpoints. The folder is watched, not the file, because editors and Kubernetes
 * replace it. A file that is gone, half written or wrong keeps the last set and is reported.
 */
export class FileSource implements Source {
  readonly name: string;
  readonly #path: string;
  readonly #timers: Timers;
  readonly #everyMs: number;
  readonly #settleMs: number;
  readonly #maxEndpoints: number;
  #listener: SourceListener | null = null;
  #watcher: FSWatcher | null = null;
  #cancel: Cancel = () => {};
  #reading = false;
  #noticed = false;
  /** Text last told to the listener, as a set or as a failure; null: none yet, or unreadable. */
  #told: string | null = null;
  #before: string | null = null;

  constructor(options: FileSourceOptions) {
    this.name = `file:${options.path}`;
    this.#path = options.path;
    this.#timers = options.timers;
    this.#everyMs = options.everyMs ?? 5000;
    this.#settleMs = options.settleMs ?? 50;
    this.#maxEndpoints = options.maxEndpoints ?? 65_536;
  }

  async start(listener: SourceListener): Promise<void> {
    this.#listener = listener;
    this.#watch();
    await this.#look(true);
  }

  stop(): Promise<void> {
    this.#listener = null;
    this.#cancel();
    this.#watcher?.close();
    this.#watcher = null;
    return Promise.resolve();
  }

  #watch(): void {
    try {
      this.#watcher = watch(dirname(this.#path), { persistent: false }, () => this.#notice());
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      // No such folder yet, or no more watches: the regular look finds the file all the same.
      this.#watcher = null;
    }
  }

  #notice(): void {
    if (this.#reading) this.#noticed = true;
    else this.#lookIn(this.#settleMs);
  }

  #lookIn(delayMs: number): void {
    this.#cancel();
    if (this.#listener !== null) this.#cancel = this.#timers.after(delayMs, () => void this.#look(false));
  }

  async #look(atStart: boolean): Promise<void> {
    this.#reading = true;
    this.#noticed = false;
    const text = await this.#read();
    this.#reading = false;
    const isSettled = atStart || text === null || text === this.#before;
    this.#before = text;
    if (text !== null && text !== this.#told && isSettled) this.#tell(text);
    const isSoon = this.#noticed || (text !== null && text !== this.#told);
    this.#lookIn(isSoon ? this.#settleMs : this.#everyMs);
  }

  async #read(): Promise<string | null> {
    try {
      const file = await open(this.#path, "r");
      try {
        const { size } = await file.stat();
        if (size > MAX_FILE_BYTES)
          throw badEndpoint(this.#path, `${size} bytes; at most ${MAX_FILE_BYTES} are allowed.`);
        return await file.readFile("utf8");
      } finally {
        await file.close();
      }
    } catch (caught) {
      this.#told = null;
      this.#listener?.failed(this.name, caught instanceof Error ? caught : new Error(String(caught)));
      return null;
    }
  }

  #tell(text: string): void {
    this.#told = text;
    try {
      const endpoints = parseEndpoints(parseYaml(text, { maxAliasCount: 0 }), this.#maxEndpoints);
      this.#listener?.endpoints(this.name, endpoints);
    } catch (caught) {
      this.#listener?.failed(this.name, caught instanceof Error ? caught : new Error(String(caught)));
    }
  }
}
