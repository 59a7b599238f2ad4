import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Registry } from "prom-client";
import { scrapedGauge } from "./gauges.ts";

const QUANTILES = [0.5, 0.9, 0.99, 1];

/** The process itself: memory, CPU, and how late the event loop runs. Returns a function that ends the watching. */
export function addProcessGauges(registry: Registry): () => void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  scrapedGauge(
    registry,
    {
      name: "kvasir_event_loop_delay_seconds",
      help: "How late the event loop ran since the last scrape.",
      labels: ["quantile"],
    },
    (set) => {
      for (const quantile of QUANTILES)
        set({ quantile: String(quantile) }, delay.count === 0 ? 0 : delay.percentile(quantile * 100) / 1e9);
      delay.reset();
    },
  );
  scrapedGauge(registry, { name: "kvasir_resident_memory_bytes", help: "Resident memory of the router." }, (set) =>
    set({}, process.memoryUsage.rss()),
  );
  scrapedGauge(
    registry,
    { name: "kvasir_cpu_seconds", help: "CPU time the router has used.", labels: ["mode"] },
    (set) => {
      const { user, system } = process.cpuUsage();
      set({ mode: "user" }, user / 1e6);
      set({ mode: "system" }, system / 1e6);
    },
  );
  return () => void delay.disable();
}
