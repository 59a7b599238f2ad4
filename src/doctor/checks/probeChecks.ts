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

function checkTokens({ model, prompt, chat, own }: TokenReading, place: Place): Finding[] {
  if (own.kind === "none") return [];
  if (own.kind === "unusable") return [found("tokenizer_unusable", place, `models.${model}.tokenizer: ${own.why}`)];
  const findings: Finding[] = [];
  if (prompt !== null && !equal(prompt, own.prompt)) {
    findings.push(found("tokenizer_differs", place, `For ${model}, a text is ${difference(prompt, own.prompt)}.`));
  }
  if ("why" in own.chat) {
    findings.push(found("template_unusable", place, `models.${model}.tokenizer: ${own.chat.why}`));
  } else if (findings.length === 0 && chat !== null && !equal(chat, own.chat)) {
    findings.push(found("template_differs", place, `For ${model}, a chat is ${difference(chat, own.chat)}.`));
  }
  return findings;
}

function equal(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, at) => value === b[at]);
}

function difference(theirs: readonly number[], own: readonly number[]): string {
  const first = own.findIndex((token, at) => token !== theirs[at]);
  const at = first === -1 ? own.length : first;
  return `${theirs.length} tokens for the engine and ${own.length} here, of which number ${at} is ${theirs[at] ?? "missing"} there and ${own[at] ?? "missing"} here`;
}
