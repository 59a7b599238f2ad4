import type { Finding, Severity } from "../findings/finding.ts";

export type Counts = Readonly<Record<Severity, number>>;

export function countFindings(findings: readonly Finding[]): Counts {
  const counts = { error: 0, warn: 0, info: 0 };
  for (const { severity } of findings) counts[severity]++;
  return counts;
}

/** 0: nothing that scripts should stop for; 1: errors, or warnings if `strict`. 2 is for an examination that could not run. */
export function exitCodeOf(findings: readonly Finding[], strict: boolean): 0 | 1 {
  const { error, warn } = countFindings(findings);
  return error > 0 || (strict && warn > 0) ? 1 : 0;
}
