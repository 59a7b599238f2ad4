import { watch, type FSWatcher } from "node:fs";
import { basename, dirname } from "node:path";
import type { Cancel, Timers } from "#src/determinism/timers.ts";
import { ConfigError } from "./configError.ts";
import { loadConfig, type Environment } from "./loadConfig.ts";
import type { Config } from "./schema.ts";

/** An editor writes a file in several steps; what it looks like between them is nobody's wish. */
const SETTLE_MS = 200;

export interface ConfigFileListener {
  changed(config: Config): void;
  /** The file does not load; what was in use stays in use. */
  refused(error: ConfigError): void;
}

/** A configuration file that is read again when it changes or when told so. */
export class ConfigFile {
  readonly path: string;
  readonly #environment: Environment;
  readonly #listener: ConfigFileListener;
  readonly #timers: Timers;
  #watcher: FSWatcher | null = null;
  #pending: Cancel | null = null;
  /** Loads follow one another, so that the last one read is the last one reported. */
  #loading: Promise<void> = Promise.resolve();

  constructor(path: string, environment: Environment, listener: ConfigFileListener, timers: Timers) {
    this.path = path;
    this.#environment = environment;
    this.#listener = listener;
    this.#timers = timers;
  }

  /**
   * Watches the directory, not the file: editors and Kubernetes replace the file (or a link beside it) and a watch on
   * the old one would be silent for ever after.
   */
  watch(): void {
    const name = basename(this.path);
    this.#watcher = watch(dirname(this.path), { persistent: false }, (_event, changed) => {
      if (changed !== null && changed !== name && changed !== "..data") return;
      this.#pending?.();
      this.#pending = this.#timers.after(SETTLE_MS, () => void this.reload());
    });
    this.#watcher.on("error", () => this.#watcher?.close());
  }

  /** Reads the file again and reports it, changed or not. Never rejects. */
  reload(): Promise<void> {
    this.#loading = this.#loading.then(async () => {
      try {
        this.#listener.changed(await loadConfig(this.path, this.#environment));
      } catch (caught) {
        this.#listener.refused(caught instanceof ConfigError ? caught : new ConfigError([String(caught)], caught));
      }
    });
    return this.#loading;
  }

  close(): void {
    this.#pending?.();
    this.#watcher?.close();
    this.#watcher = null;
  }
}
