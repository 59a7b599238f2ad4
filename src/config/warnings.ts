import { problemAt } from "./configError.ts";
import type { Config } from "./schema.ts";

/** What is allowed but most likely not meant, each with its place in the file. */
export function configWarnings(config: Config): readonly string[] {
  return config.engines.flatMap(({ role }, at) => {
    if (role === "mixed") return [];
    const what = `${role}: this engine gets no requests; only \`mixed\` ones do.`;
    return [problemAt(config, ["engines", at, "role"], what)];
  });
}
