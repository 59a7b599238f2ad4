import { problemAt } from "./configError.ts";
import type { Config } from "./schema.ts";

/** What is allowed but most likely not meant, each with its place in the file. */
export function configWarnings(config: Config): readonly string[] {
  const roles = new Set(config.engines.map(({ role }) => role));
  // Others may come from elsewhere.
  const complete = config.discovery.files.length === 0 && config.discovery.dns.length === 0;
  return config.engines.flatMap(({ role }, at) => {
    const warning = (what: string): string[] => [problemAt(config, ["engines", at, "role"], `${role}: ${what}`)];
    if (role === "draft") return warning("this engine gets no requests; nothing uses drafts yet.");
    if (complete && role === "prefill" && !roles.has("decode"))
      return warning("this engine gets no requests that generate; no engine of the file decodes what it prefills.");
    return [];
  });
}
