export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Turns prompts into tokens as the router does. Both throw where the router would go by the text instead. */
export interface OwnTokenizer {
  prompt(text: string): readonly number[];
  chat(messages: readonly ChatMessage[]): readonly number[];
}

/** The tokenizers that the configuration names, by model. */
export interface Tokenizers {
  /** Null: none is configured. Rejects where one is and can't be used. */
  of(model: string): Promise<OwnTokenizer | null>;
}
