import { found, type Finding, type Place } from "../findings/finding.ts";
import { isSeen, kindOf, type Sighting, type TokenReading } from "../sighting.ts";

/** What answers and tokens show. */
export function checkAnswers(sighting: Sighting): Finding[] {
  if (!isSeen(sighting)) return [];
  const { endpoint, probe, profile, tokens } = sighting;
  const place = { replica: endpoint.name, kind: kindOf(sighting) };
  const findings = checkTokens(tokens, place);
  if (probe === null) return findings;
  if (probe.failure !== null) return [...findings, found("probe_failed", place, probe.failure)];
  if (probe.cachedTokens === null) {
    findings.push(found("cached_tokens_missing", place, "Its usage has no prompt_tokens_details.cached_tokens."));
  } else if (probe.cachedTokens === 0 && profile.prefixCachingEnabled !== false) {
    const message = `A prompt of ${probe.promptTokens ?? "several"} tokens was sent twice; the second time 0 were cached.`;
    findings.push(found("repeat_not_cached", place, message));
  }
  return findings;
}

function checkTokens({ model, prompt, chat, ownPrompt, ownChat }: TokenReading, place: Place): Finding[] {
  const differs = (what: string, theirs: readonly number[], own: readonly number[]): string => {
    const at = own.findIndex((token, index) => token !== theirs[index]);
    const where = at === -1 ? own.length : at;
    return `${what} is ${theirs.length} tokens for the engine and ${own.length} here; they differ from token ${where} on (${theirs[where] ?? "none"} and ${own[where] ?? "none"}), for ${model}.`;
  };
  if (prompt !== null && ownPrompt !== null && !equal(prompt, ownPrompt)) {
    return [found("tokenizer_differs", place, differs("A text", prompt, ownPrompt))];
  }
  if (chat !== null && ownChat !== null && !equal(chat, ownChat)) {
    return [found("template_differs", place, differs("A chat", chat, ownChat))];
  }
  return [];
}

export function equal(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, at) => value === b[at]);
}
