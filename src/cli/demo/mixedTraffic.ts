import type { Random } from "#src/determinism/random.ts";
import type { ChatMessage, PlannedChat, Traffic } from "./traffic.ts";
import { someText } from "./words.ts";

const SYSTEM_PROMPTS = 6;
const SYSTEM_PROMPT_BYTES = 24_000;
const OPEN_CONVERSATIONS = 48;
const TURNS_PER_CONVERSATION = 8;

interface Conversation {
  messages: ChatMessage[];
  turnsLeft: number;
  waiting: boolean;
}

/**
 * What a public chat service sees, in miniature: about half the chats continue a conversation, a third share one of a
 * few long system prompts, the rest are one-off prompts that nobody will ask again. Arrivals are Poisson.
 */
export function mixedTraffic(ratePerS: number, random: Random): Traffic {
  const systemPrompts = Array.from({ length: SYSTEM_PROMPTS }, (_, i) => ({
    role: "system" as const,
    content: `You are assistant ${i}. ${someText(SYSTEM_PROMPT_BYTES, random)}`,
  }));
  const conversations: Conversation[] = [];
  let atMs = 0;
  let asked = 0;

  const systemPrompt = (): ChatMessage =>
    systemPrompts[random.below(SYSTEM_PROMPTS)] ?? { role: "system", content: "" };
  const question = (bytes: number): ChatMessage => ({
    role: "user",
    content: `Question ${asked++}: ${someText(bytes, random)}?`,
  });

  const nextTurn = (): Conversation => {
    const ready = conversations.filter((conversation) => !conversation.waiting);
    if (ready.length > 0 && (conversations.length >= OPEN_CONVERSATIONS || random.next() < 0.8)) {
      const conversation = ready[random.below(ready.length)];
      if (conversation !== undefined) return conversation;
    }
    const opened: Conversation = { messages: [systemPrompt()], turnsLeft: TURNS_PER_CONVERSATION, waiting: false };
    if (conversations.length >= OPEN_CONVERSATIONS) conversations.shift();
    conversations.push(opened);
    return opened;
  };

  return (): PlannedChat => {
    atMs += (-Math.log(1 - random.next()) / ratePerS) * 1000;
    const maxTokens = 60 + random.below(240);
    const draw = random.next();
    if (draw < 0.5) {
      const conversation = nextTurn();
      conversation.messages.push(question(200 + random.below(1200)));
      conversation.waiting = true;
      const messages = [...conversation.messages];
      return {
        atMs,
        kind: "conversation",
        messages,
        maxTokens,
        answered: (text) => {
          conversation.waiting = false;
          conversation.messages.push({ role: "assistant", content: text });
          conversation.turnsLeft--;
          const at = conversations.indexOf(conversation);
          if (conversation.turnsLeft <= 0 && at >= 0) conversations.splice(at, 1);
        },
      };
    }
    if (draw < 0.85) {
      return { atMs, kind: "shared system prompt", messages: [systemPrompt(), question(400)], maxTokens };
    }
    return { atMs, kind: "one-off", messages: [question(4_000 + random.below(60_000))], maxTokens };
  };
}
