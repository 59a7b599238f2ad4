import { z } from "zod";
import { POLICY_NAMES } from "./names.ts";
import { filePath, integer, MAX_MS, modelName, name, number } from "./schemaParts.ts";

const policyName = z.enum(POLICY_NAMES);

export const policySchema = z
  .union([
    policyName.transform((only) => ({ name: only, options: {} })),
    z.strictObject({
      name: policyName.describe("Which policy."),
      options: z.record(z.string(), z.number()).default({}).describe("Options of that policy: `kvasir policies`."),
    }),
  ])
  .describe("How a replica is chosen: a policy's name, or an object with its options.");

const tokenizer = z
  .union([
    filePath.transform((folder) => ({ folder })),
    z.strictObject({
      folder: filePath.describe("Folder with tokenizer.json, tokenizer_config.json and the chat template."),
      chatTemplateFile: filePath.optional().describe("Instead of the folder's (vLLM's `--chat-template`)."),
      contentFormat: z
        .enum(["string", "openai"])
        .optional()
        .describe("vLLM's `--chat-template-content-format`. Absent: found out from the template, as vLLM does."),
      templateArguments: z.record(z.string(), z.json()).optional().describe("vLLM's `--default-chat-template-kwargs`."),
    }),
  ])
  .describe(
    "The model's own folder, or an object with it. With it, prompts are known by the engine's own tokens, and KV events tell exactly who has them. Absent: by their text, and caches are inferred from own traffic.",
  );

export const modelSchema = z
  .strictObject({
    aliases: z
      .array(modelName)
      .max(256)
      .default([])
      .describe("Further names for clients. The name in the request's bytes is replaced on the way to the engine."),
    policy: policySchema.optional(),
    tokenizer: tokenizer.optional(),
    kvBytesPerToken: integer(1, 1_000_000_000)
      .optional()
      .describe(
        "KV of one token, all layers together, by which hand-offs are priced. Absent: 131072, as of an 8B model with grouped heads.",
      ),
    class: name.optional().describe("Service class of requests whose key names none. Absent: `standard`."),
  })
  .describe("Settings of one model.");

export const classSchema = z
  .strictObject({
    priority: integer(-100, 100).default(1).describe("Higher goes first while requests wait."),
    ttftTargetMs: integer(1, MAX_MS).default(2_000).describe("Time to first token that is promised."),
    tpotTargetMs: integer(1, MAX_MS).default(100).describe("Time per output token that is promised."),
    weight: number(0, 1_000).default(1).describe("What missing a target is worth against other classes."),
    guaranteedShare: number(0, 1)
      .default(0.05)
      .describe("Share of tokens that it gets at least while it waits, whatever higher classes want."),
    queueMs: integer(1, MAX_MS).optional().describe("Longest wait in the router. Absent: `limits.queueMs`."),
    shedLate: z
      .boolean()
      .default(false)
      .describe("Whether a request whose first token cannot come within `ttftTargetMs` any more is refused."),
  })
  .describe("One service class.");
