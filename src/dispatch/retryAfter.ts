import { headerValue } from "./headers.ts";
import type { HeaderList } from "./headers.ts";

/**
 * How long an answer asks to be left alone, in milliseconds: `Retry-After-Ms`, or `Retry-After` in seconds (a fraction
 * is accepted) or as a date; null where it does not say.
 */
export function retryAfterMs(headers: HeaderList, nowEpochMs: number): number | null {
  const millis = headerValue(headers, "retry-after-ms");
  if (millis !== null && /^\d{1,9}(?:\.\d+)?$/u.test(millis)) return Number(millis);
  const value = headerValue(headers, "retry-after");
  if (value === null) return null;
  if (/^\d{1,6}(?:\.\d+)?$/u.test(value)) return Number(value) * 1000;
  const dateMs = value.endsWith("GMT") ? Date.parse(value) : Number.NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowEpochMs);
}
