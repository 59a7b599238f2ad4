import { ENGINE_FINDINGS } from "./engineFindings.ts";
import { EVENT_FINDINGS } from "./eventFindings.ts";
import { POOL_FINDINGS } from "./poolFindings.ts";

/** Everything the doctor can find. docs/operations.md has the same list, and a test compares them. */
export const FINDINGS = { ...ENGINE_FINDINGS, ...EVENT_FINDINGS, ...POOL_FINDINGS };

export type FindingId = keyof typeof FINDINGS;
