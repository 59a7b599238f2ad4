import type { ClassTargets } from "../policy.ts";
import { decodeSteps } from "./decode.ts";
import type { Outlook } from "./outlook.ts";

/**
 * Time past the class's targets, times the class's weight: once for the first token, and for every later token by how
 * much its step is too long. `untilFirstTokenMs`: from now, all own terms before the first token.
 */
export function latenessMs(outlook: Outlook, untilFirstTokenMs: number, targets: ClassTargets): number {
  const firstMs = Math.max(0, outlook.waitedMs + untilFirstTokenMs - targets.ttftTargetMs);
  const eachMs = Math.max(0, outlook.joinedStepMs - targets.tpotTargetMs);
  return targets.weight * (firstMs + decodeSteps(outlook) * eachMs);
}
