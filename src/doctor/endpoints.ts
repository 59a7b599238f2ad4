import type { Config } from "#src/config/schema.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { Discovery } from "#src/discovery/discovery.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import { makeSources } from "#src/gateway/sources.ts";

export interface FoundEndpoints {
  readonly endpoints: readonly EngineEndpoint[];
  /** What is wrong with a source, by its name. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The engines that all sources of a configuration name at this moment. */
export async function endpointsOf(config: Config): Promise<FoundEndpoints> {
  let problems: ReadonlyMap<string, string> = new Map();
  const discovery = new Discovery({
    sources: makeSources(config, processTimers).all,
    listener: { changed: () => {}, problems: (bySource) => (problems = bySource) },
    maxEndpoints: config.discovery.maxEngines,
  });
  await discovery.start();
  await discovery.stop();
  return { endpoints: discovery.endpoints, problems };
}
