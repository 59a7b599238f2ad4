import { Command } from "commander";
import { configReference } from "#src/config/configDocs.ts";
import { configJsonSchema } from "#src/config/jsonSchema.ts";
import { loadConfig } from "#src/config/loadConfig.ts";
import { configWarnings } from "#src/config/warnings.ts";
import { checkConfig } from "#src/gateway/checkConfig.ts";

export function configCommand(): Command {
  const command = new Command("config").description("check a configuration, or print what one may contain");
  command
    .command("check")
    .description("load a configuration file and say what is wrong with it")
    .requiredOption("-c, --config <file>", "configuration file")
    .action(async ({ config: path }: { config: string }) => {
      const config = await loadConfig(path, process.env);
      await checkConfig(config);
      for (const warning of configWarnings(config)) console.error(`warning: ${warning}`);
      console.log(
        `${path} can be used: ${counted(config.engines.length, "engine")}, ${counted(config.keys.length, "client key")}.`,
      );
    });
  command
    .command("schema")
    .description("print the JSON Schema, for editors")
    .action(() => console.log(JSON.stringify(configJsonSchema, null, 2)));
  command
    .command("reference")
    .description("print every key as Markdown, as in docs/configuration.md")
    .action(() => console.log(configReference()));
  return command;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
