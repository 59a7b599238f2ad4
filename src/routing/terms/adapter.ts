import type { PriceSettings } from "../priceSettings.ts";
import type { PricedAdapters } from "../pricedReplica.ts";

/**
 * Loading the adapter where it is not in GPU memory, and loading again what it pushes out, if that is asked for again.
 */
export function adapterMs(adapter: string | null, adapters: PricedAdapters, settings: PriceSettings): number {
  if (adapter === null || adapters.isResident(adapter)) return 0;
  const again = adapters.victim === null ? 0 : settings.adapterReuse;
  return settings.adapterLoadMs * (1 + again);
}
