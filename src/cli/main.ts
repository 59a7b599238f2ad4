import { Command } from "commander";
import { ConfigError } from "#src/config/configError.ts";
import { ListenError } from "#src/gateway/listenError.ts";
import packageJson from "../../package.json" with { type: "json" };

/** Loaded one at a time: reading the code of all takes longer than most commands run. */
const COMMANDS = new Map<string, () => Promise<Command>>([
  ["serve", async () => (await import("./serve.ts")).serveCommand()],
  ["demo", async () => (await import("./demo/demoCommand.ts")).demoCommand()],
  ["doctor", async () => (await import("./doctor.ts")).doctorCommand()],
  ["simulate", async () => (await import("./simulate.ts")).simulateCommand()],
  ["replay", async () => (await import("./replay.ts")).replayCommand()],
  ["emulate", async () => (await import("./emulate.ts")).emulateCommand()],
  ["config", async () => (await import("./config.ts")).configCommand()],
  ["key", async () => (await import("./key.ts")).keyCommand()],
  ["reference", async () => (await import("./reference.ts")).referenceCommand()],
  ["policies", async () => (await import("./policies.ts")).policiesCommand()],
]);

const NEEDED_NODE = 24;

async function main(): Promise<void> {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < NEEDED_NODE) {
    console.error(`kvasir needs Node ${NEEDED_NODE} or newer; this is ${process.version}. bin/kvasir.mjs finds one.`);
    process.exit(1);
  }
  const program = new Command("kvasir")
    .description("KV-aware scheduling and inference routing for fleets of LLM engines")
    .version(packageJson.version)
    .showHelpAfterError("(kvasir help <command> shows what there is)");
  const asked = COMMANDS.get(process.argv[2] ?? "");
  for (const load of asked === undefined ? COMMANDS.values() : [asked]) program.addCommand(await load());
  await program.parseAsync();
}

main().catch((caught: unknown) => {
  console.error(describe(caught));
  process.exit(1);
});

/** What a person at a terminal needs: the reason, without a stack where the reason is known. */
function describe(caught: unknown): string {
  if (caught instanceof ConfigError || caught instanceof ListenError) return caught.message;
  if (!(caught instanceof Error)) return String(caught);
  const { code, address, port } = caught as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code === "EADDRINUSE") return `Port ${port} on ${address} is taken. Choose another with --port, or 0 for any.`;
  if (code === "EACCES") return `Listening on ${address}:${port} is not permitted.`;
  if (code === "EADDRNOTAVAIL") return `${address} is no address of this machine.`;
  return caught.stack ?? caught.message;
}
