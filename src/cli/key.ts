import { Command } from "commander";
import { hashClientKey, newClientKey } from "#src/gateway/clientKey.ts";

export function keyCommand(): Command {
  const command = new Command("key").description("client keys");
  command
    .command("create")
    .description("print a new client key, once, and its hash for the configuration")
    .option("--name <name>", "who it is for", "client")
    .action(({ name }: { name: string }) => {
      const key = newClientKey();
      console.log(`# The key, for the client; it is not stored and cannot be shown again:\n# ${key}`);
      console.log(`keys:\n  - name: ${name}\n    hash: ${hashClientKey(key)}`);
    });
  return command;
}
