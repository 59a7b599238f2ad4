export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Turns prompts into tokens as the router does. */
export interface OwnTokenizer {
  prompt(text: string): readonly number[];
  /** Null: no template is known. */
  chat(messages: readonly ChatMessage[]): readonly number[] | null;
}

/** The tokenizers that the configuration names, by model; null: none for this one. */
export interface Tokenizers {
  of(model: string): Promise<OwnTokenizer | null>;
}

export const NO_TOKENIZERS: Tokenizers = { of: () => Promise.resolve(null) };
