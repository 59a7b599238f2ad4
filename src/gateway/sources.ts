import { ConfigError, problemAt } from "#src/config/configError.ts";
import type { Config } from "#src/config/schema.ts";
import type { Timers } from "#src/determinism/timers.ts";
import { AdminSource } from "#src/discovery/adminSource.ts";
import { DnsSource } from "#src/discovery/dnsSource.ts";
import { FileSource } from "#src/discovery/fileSource.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { Source } from "#src/discovery/source.ts";
import { StaticSource } from "#src/discovery/staticSource.ts";

/** The engines that the configuration lists. Throws ConfigError for an address that cannot be used. */
export function configuredEndpoints(config: Config): EngineEndpoint[] {
  return config.engines.map((engine, at) => {
    try {
      return parseEndpoint({ ...engine, apiKey: engine.apiKey?.reveal() });
    } catch (caught) {
      const what = caught instanceof Error ? caught.message : String(caught);
      throw new ConfigError([problemAt(config, ["engines", at], what)], caught);
    }
  });
}

/** Everything that names engines. The list of the configuration comes first: where two disagree, it is right. */
export interface Sources {
  readonly listed: StaticSource;
  readonly admin: AdminSource;
  readonly all: readonly Source[];
}

/** `admin`: what the admin API added so far, if there was a configuration before this one. */
export function makeSources(config: Config, timers: Timers, admin?: AdminSource): Sources {
  const { files, dns, maxEngines } = config.discovery;
  const listed = new StaticSource("config", configuredEndpoints(config));
  const added = admin ?? new AdminSource({ maxEndpoints: maxEngines });
  const watched = files.map(({ path }) => new FileSource({ path, timers, maxEndpoints: maxEngines }));
  const resolved = dns.map(({ host, record, port, scheme, everyMs, ...shared }) => {
    const {
      url: _url,
      name: _name,
      ...rest
    } = parseEndpoint({
      ...shared,
      apiKey: shared.apiKey?.reveal(),
      url: `${scheme}://dns`,
    });
    return new DnsSource({ host, record, port, scheme, everyMs, shared: rest, timers, maxEndpoints: maxEngines });
  });
  return { listed, admin: added, all: [listed, ...watched, ...resolved, added] };
}
