export interface SignalActions {
  /** SIGHUP. */
  readonly reload: () => void;
  /** SIGTERM and SIGINT. */
  readonly drain: () => Promise<void>;
}

/** Resolves when the process was told to stop and has drained. A second signal ends it at once. */
export function runUntilSignal({ reload, drain }: SignalActions): Promise<void> {
  // Something must keep the process alive between requests while its listeners are closing.
  const alive = setInterval(() => undefined, 1_000);
  return new Promise<void>((resolve, reject) => {
    let stopping = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (stopping) process.exit(signal === "SIGINT" ? 130 : 143);
      stopping = true;
      drain().then(resolve, reject);
    };
    process.on("SIGHUP", reload);
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  }).finally(() => clearInterval(alive));
}
