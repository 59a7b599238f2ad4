import { readFile } from "node:fs/promises";
import { ModelTokenizer } from "./tokens/modelTokenizer.ts";

/** Where a model's tokenizer is, and what its engines were told beside it. */
export interface TokenizerSource {
  readonly folder: string;
  readonly chatTemplateFile?: string | undefined;
  readonly contentFormat?: "string" | "openai" | undefined;
  readonly templateArguments?: Readonly<Record<string, unknown>> | undefined;
}

/** Rejects with the reason, for people, if files are missing or hold what cannot be done exactly. */
export async function loadTokenizer(source: TokenizerSource): Promise<ModelTokenizer> {
  const { folder, chatTemplateFile, contentFormat, templateArguments } = source;
  return ModelTokenizer.load(folder, {
    chatTemplate: chatTemplateFile === undefined ? null : await readFile(chatTemplateFile, "utf8"),
    contentFormat: contentFormat ?? null,
    defaultTemplateArguments: templateArguments === undefined ? null : JSON.stringify(templateArguments),
  });
}
