import type { Config } from "#src/config/schema.ts";
import { TokenIdentities } from "#src/request/tokenIdentities.ts";
import { loadTokenizers } from "./modelTokenizers.ts";
import { Policies } from "./policies.ts";
import { configuredEndpoints } from "./sources.ts";
import { readTlsFiles } from "./tlsFiles.ts";

/** What the schema cannot see: options of policies, names of engines, files. Throws as starting a router would. */
export async function checkConfig(config: Config): Promise<void> {
  void new Policies(config);
  configuredEndpoints(config);
  await readTlsFiles(config);
  const tokens = new TokenIdentities();
  try {
    await loadTokenizers(config, tokens);
  } finally {
    await tokens.close();
  }
}
