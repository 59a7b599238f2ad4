import { z } from "zod";
import { integer, modelName, name, number } from "./schemaParts.ts";

export const keySchema = z
  .strictObject({
    name: name.describe("Who it is: in logs and metrics, and the tenant that shares cached prefixes."),
    hash: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/)
      .meta({ allowed: "sha256: and 64 hexadecimal digits, as `kvasir key create` prints", secret: true })
      .describe("`sha256:<hex>` of the key; the key itself is never stored."),
    models: z.array(modelName).max(4096).optional().describe("Models and aliases it may use. Absent: all."),
    class: name.optional().describe("Service class of its requests. Absent: the model's."),
    mayChooseClass: z
      .boolean()
      .default(false)
      .describe("Whether the header `x-kvasir-class` may choose another class per request."),
    mayNameTenants: z
      .boolean()
      .default(false)
      .describe(
        "Whether the header `x-kvasir-tenant` may say for which of several tenants a request is; each then counts like a key of this weight.",
      ),
    weight: number(0.01, 1_000)
      .default(1)
      .describe("Its share of tokens against the other keys of its class while requests wait."),
    requestsPerMinute: integer(1, 100_000_000).optional().describe("Absent: not limited."),
    tokensPerMinute: integer(1, 100_000_000_000)
      .optional()
      .describe("Prompt and output tokens together; estimated first, corrected by what the engine reports."),
  })
  .describe("A client's key.");
