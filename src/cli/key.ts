import { Command, InvalidArgumentError } from "commander";
import { name as configName } from "#src/config/schemaParts.ts";
import { hashClientKey, newClientKey } from "#src/gateway/clientKey.ts";

export function keyCommand(): Command {
  const command = new Command("key").description("client keys");
  command
    .command("create")
    .description("print a new client key, once, and its hash for the configuration")
    .option("--name <name>", "who it is for: letters, digits, dots, dashes, underscores", keyName, "client")
    .action(({ name }: { name: string }) => {
      const key = newClientKey();
      console.log(`# The key, for the client; it is not stored and cannot be shown again:\n# ${key}`);
      console.log(`keys:\n  - name: ${name}\n    hash: ${hashClientKey(key)}`);
    });
  return command;
}

/** As the configuration takes it: what is printed must load. */
function keyName(text: string): string {
  const { success, data } = configName.safeParse(text);
  if (!success) throw new InvalidArgumentError(`It must be ${configName.meta()?.["allowed"] as string}.`);
  return data;
}
