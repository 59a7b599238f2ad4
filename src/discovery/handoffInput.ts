import { z } from "zod";
import { HANDOFF_NAMES } from "./replicaSpec.ts";
import type { HandoffSettings } from "./replicaSpec.ts";

const name = z.string().min(1).max(256).optional();
const size = z.number().int().min(1).max(1024).optional();

/** How an engine hands KV over, as people write it. */
export const HandoffInput = z.strictObject({
  protocol: z.enum(HANDOFF_NAMES).optional(),
  leaseMs: z.number().int().min(100).max(86_400_000).optional(),
  bootstrapHost: name,
  bootstrapPort: z.number().int().min(1).max(65_535).optional(),
  engineId: name,
  tensorParallelSize: size,
  pipelineParallelSize: size,
});

export function toHandoff(input: z.infer<typeof HandoffInput>): HandoffSettings {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
}
