import type { Engine } from "./kit/engine.ts";

/** The engines that `run.ts` has started for all test files. */
export const engines: readonly Engine[] = JSON.parse(process.env.KVASIR_TEST_ENGINES ?? "null") ?? noEngines();

function noEngines(): never {
  throw new Error("no engines are running: these tests are run by `npm run test:engine`");
}
