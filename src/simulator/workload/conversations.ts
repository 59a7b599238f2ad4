import type { Random } from "#src/determinism/random.ts";
import type { Arrival, Workload } from "./arrival.ts";
import { exponential, geometric, logNormal, zipf } from "./draws.ts";
import { drawSender } from "./mix.ts";
import type { Sender, Senders } from "./mix.ts";
import { randomFor } from "./seeds.ts";
import type { ConversationShape } from "./shapes.ts";

interface Conversation {
  readonly name: string;
  readonly sender: Sender;
  readonly random: Random;
  readonly ids: number[];
  readonly tokens: number[];
  turnsLeft: number;
}

/**
 * Conversations that begin at random, independent of each other (Poisson), `perSecond` of them; each turn follows some
 * time after the answer before it, and its prompt is everything said so far. `requests` in all.
 */
export function conversations(
  shape: ConversationShape,
  options: { readonly perSecond: number; readonly requests: number; readonly senders: Senders; readonly seed: number },
): Workload {
  const { perSecond, requests, senders, seed } = options;
  const beginning = randomFor(seed, "conversations");
  const running = new Map<string, Conversation>();
  let begun = 0;
  let made = 0;
  let runs = shape.applications;
  let beginsMs = 0;

  const turn = (conversation: Conversation, atMs: number): Arrival => {
    const { random, ids, tokens, name, sender } = conversation;
    made++;
    conversation.turnsLeft--;
    ids.push(runs++);
    tokens.push(wholeTokens(shape.inputTokens, random));
    return {
      atMs,
      content: { ids: [...ids], tokens: [...tokens] },
      promptTokens: tokens.reduce((sum, each) => sum + each, 0),
      outputTokens: wholeTokens(shape.outputTokens, random),
      answerId: runs++,
      session: name,
      ...sender,
    };
  };

  return {
    expected: requests,
    next() {
      if (made >= requests) return null;
      beginsMs += exponential(1000 / perSecond, beginning);
      const random = randomFor(seed, `conversation ${begun}`);
      const application = zipf(shape.applications, random);
      const conversation: Conversation = {
        name: `conversation-${begun++}`,
        sender: drawSender(senders, random),
        random,
        // An application's instructions are as long each time.
        ids: [application],
        tokens: [wholeTokens(shape.systemTokens, randomFor(seed, `application ${application}`))],
        turnsLeft: random.next() < shape.singleTurnShare ? 1 : 1 + geometric(shape.meanTurns - 1, random),
      };
      running.set(conversation.name, conversation);
      return turn(conversation, beginsMs);
    },
    ended(arrival, answered, nowMs) {
      const conversation = running.get(arrival.session ?? "");
      if (conversation === undefined) return [];
      const contextTokens = arrival.promptTokens + arrival.outputTokens;
      // Who is refused goes away.
      if (!answered || conversation.turnsLeft === 0 || contextTokens > shape.maxContextTokens || made >= requests) {
        running.delete(conversation.name);
        return [];
      }
      conversation.ids.push(arrival.answerId);
      conversation.tokens.push(arrival.outputTokens);
      return [turn(conversation, nowMs + logNormal(shape.pauseMs, conversation.random))];
    },
  };
}

function wholeTokens(spread: { readonly mean: number; readonly sigma: number }, random: Random): number {
  return Math.max(1, Math.round(logNormal(spread, random)));
}
