import { Command } from "commander";
import { POLICY_NAMES, policyOptions } from "#src/routing/createPolicy.ts";

export function policiesCommand(): Command {
  return new Command("policies").description("list the policies and their options").action(() => {
    for (const name of POLICY_NAMES) {
      console.log(name);
      for (const [key, option] of Object.entries(policyOptions(name))) {
        console.log(`  ${key} (${option.min}..${option.max}, default ${option.default}): ${option.about}`);
      }
    }
  });
}
