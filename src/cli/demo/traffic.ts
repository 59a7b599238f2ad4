/** One chat to send at a moment. */
export interface PlannedChat {
  /** Milliseconds after the traffic's start; never decreasing from one chat to the next. */
  readonly atMs: number;
  readonly kind: "conversation" | "shared system prompt" | "one-off" | "trace";
  readonly messages: readonly ChatMessage[];
  readonly maxTokens: number;
  /** Told of the answer, so that a conversation can go on. */
  readonly answered?: (text: string) => void;
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** A source of chats in order of time; null when it has ended. */
export type Traffic = () => PlannedChat | null;
