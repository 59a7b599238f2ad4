import { z } from "zod";
import { number } from "./schemaParts.ts";

function link(what: string, bandwidth: string, latency: string, port: string): z.ZodOptional<z.ZodObject<LinkShape>> {
  return z
    .strictObject({
      gigabytesPerSecond: number(0.001, 100_000).optional().describe(`Bandwidth of a port. Absent: ${bandwidth}.`),
      latencyMs: number(0, 60_000)
        .optional()
        .describe(`From the end of a prefill to the first byte moved. Absent: ${latency}.`),
      sharedBy: z
        .enum(["replica", "host", "rack", "zone"])
        .optional()
        .describe(`Whose port it is: hand-offs through one port share its bandwidth. Absent: \`${port}\`.`),
    })
    .optional()
    .describe(what);
}

interface LinkShape {
  readonly [key: string]: z.ZodType;
  readonly gigabytesPerSecond: z.ZodOptional<z.ZodNumber>;
  readonly latencyMs: z.ZodOptional<z.ZodNumber>;
  readonly sharedBy: z.ZodOptional<z.ZodEnum<{ replica: "replica"; host: "host"; rack: "rack"; zone: "zone" }>>;
}

/** Defaults are those of `LINK_KINDS` of the fleet, which a test holds them to. */
export const linksSchema = z
  .strictObject({
    nvlink: link("Between engines of one NVLink domain.", "200", "1", "replica"),
    host: link("Between engines of one host.", "40", "1", "host"),
    rack: link("Between hosts of one rack.", "25", "2", "host"),
    zone: link("Between racks of one zone.", "12.5", "3", "rack"),
    none: link("Between engines whose labels share nothing.", "3", "5", "host"),
  })
  .prefault({})
  .describe(
    "Ways of KV from prefill to decode engines, by the closest label that both share. What they are really like is learned from hand-offs; this is where learning starts. A change forgets what was learned.",
  );
