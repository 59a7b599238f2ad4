import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bench, run } from "mitata";
import { readVllmMetrics } from "#src/engines/vllm/vllmMetrics.ts";

/** One scrape of a replica; a fleet of 64 has as many each second. */
const TEXT = readFileSync(join(import.meta.dirname, "../test/recorded/vllm-0.32.0/metrics.txt"), "utf8");

bench(`vLLM scrape, ${TEXT.length} bytes`, () => readVllmMetrics(TEXT));
await run();
