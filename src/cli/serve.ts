import { Command, InvalidArgumentError } from "commander";
import { ConfigFile } from "#src/config/configFile.ts";
import { ConfigError } from "#src/config/configError.ts";
import { isLoopback } from "#src/config/loopback.ts";
import { configFrom, loadConfig } from "#src/config/loadConfig.ts";
import type { Config, ConfigInput } from "#src/config/schema.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { startRouter, type RunningRouter } from "#src/gateway/router.ts";
import { runUntilSignal } from "./untilSignal.ts";

interface ServeFlags {
  readonly config?: string;
  readonly engine: readonly string[];
  readonly host?: string;
  readonly port?: number;
  readonly adminHost?: string;
  readonly adminPort?: number;
  readonly policy?: string;
  readonly logLevel?: string;
}

/** The admin token where there is no file to hold it. In the arguments everybody on the machine could read it. */
const ADMIN_TOKEN_VARIABLE = "KVASIR_ADMIN_TOKEN";

export function serveCommand(): Command {
  return new Command("serve")
    .description("route requests to engines")
    .option("-c, --config <file>", "configuration file; without it, the flags below are the configuration")
    .option("-e, --engine <url>", "an engine, e.g. http://10.0.0.1:8000; may be repeated", collect, [])
    .option("--host <address>", "address for clients")
    .option("-p, --port <port>", "port for clients", parsePort)
    .option("--admin-host <address>", `address of the admin listener; beyond loopback, set ${ADMIN_TOKEN_VARIABLE}`)
    .option("--admin-port <port>", "port of the admin listener", parsePort)
    .option("--policy <name>", "how a replica is chosen (kvasir policies lists them)")
    .option("--log-level <level>", "debug, info, warn, error or silent")
    .addHelpText("after", "\nExample: kvasir serve --engine http://10.0.0.1:8000 --engine http://10.0.0.2:8000")
    .action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const config = await configOf(flags);
  const router = await startRouter(config);
  const file = flags.config === undefined ? null : watched(flags.config, router);
  const open = config.keys.length === 0 && !isLoopback(config.listen.host);
  console.error(
    `kvasir listens on ${router.url}, admin on ${router.adminUrl ?? "no port"}` +
      (open ? "\nThere are no client keys: everybody who can reach it may use it (kvasir key create)." : ""),
  );
  await runUntilSignal({
    reload: () => {
      if (file === null) console.error("SIGHUP: there is no configuration file to load again");
      else void file.reload();
    },
    drain: () => router.drain(),
  });
  file?.close();
}

async function configOf(flags: ServeFlags): Promise<Config> {
  if (flags.config === undefined) {
    if (flags.engine.length > 0) return configFrom(inputOf(flags));
    throw new ConfigError(["There is nothing to route to: give --engine <url>, or a configuration with -c <file>."]);
  }
  const others = Object.entries(flags).filter(
    ([flag, value]) => flag !== "config" && !(Array.isArray(value) && value.length === 0) && value !== undefined,
  );
  if (others.length > 0) {
    const names = others.map(([flag]) => `--${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
    throw new ConfigError([`With -c, everything is in the file: ${names.join(", ")} cannot be given beside it.`]);
  }
  return loadConfig(flags.config, process.env);
}

function inputOf({ engine, host, port, adminHost, adminPort, policy, logLevel }: ServeFlags): ConfigInput {
  const given = {
    engines: [...engine],
    listen: defined({ host, port }),
    admin: defined({ host: adminHost, port: adminPort, token: process.env[ADMIN_TOKEN_VARIABLE] || undefined }),
    policy,
    log: defined({ level: logLevel }),
  };
  // The schema says what is allowed; a flag that it refuses is reported under the key it stands for.
  return defined(given);
}

/** Without the keys that were not given. */
function defined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function watched(path: string, router: RunningRouter): ConfigFile {
  const refused = (caught: unknown): void =>
    router.configRefused(caught instanceof ConfigError ? caught : new ConfigError([String(caught)], caught));
  const file = new ConfigFile(
    path,
    process.env,
    { changed: (config) => void router.reload(config).catch(refused), refused },
    processTimers,
  );
  file.watch();
  return file;
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function parsePort(text: string): number {
  const port = Number(text);
  if (text.trim() !== "" && Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new InvalidArgumentError("allowed: 0..65535");
}
