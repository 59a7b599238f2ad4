import { z } from "zod";
import { PREDEFINED_CLASS_NAMES } from "./names.ts";
import { enginesSchema, discoverySchema, engineTlsSchema } from "./enginesSchema.ts";
import { limitsSchema } from "./limitsSchema.ts";
import { keySchema } from "./keySchema.ts";
import { linksSchema } from "./linksSchema.ts";
import { classSchema, modelSchema, policySchema } from "./modelsSchema.ts";
import { recordSchema } from "./recordSchema.ts";
import { filePath, host, integer, modelName, name, port, secret } from "./schemaParts.ts";

const tls = z
  .strictObject({
    certFile: filePath.describe("PEM file with the certificate and its chain."),
    keyFile: filePath.describe("PEM file with the private key."),
  })
  .describe("TLS for this listener. Without it, plain HTTP.");

const listen = z
  .strictObject({
    host: host.default("0.0.0.0").describe("Address to listen on. `::` takes IPv6 and IPv4."),
    port: port.default(8080).describe("Port; 0 lets the system choose."),
    tls: tls.optional(),
  })
  .prefault({})
  .describe("Where clients connect. Changing it takes a restart.");

const admin = z
  .strictObject({
    enabled: z.boolean().default(true).describe("False: no admin listener, and so no metrics."),
    host: host.default("127.0.0.1").describe("Address to listen on. Anything but loopback needs a token."),
    port: port.default(9091).describe("Port; 0 lets the system choose."),
    token: secret.optional().describe("Bearer token that every admin request must carry, 8 characters at least."),
    tls: tls.optional(),
  })
  .prefault({})
  .describe("Metrics, decisions, replicas and the status page. Changing address or TLS takes a restart.");

const log = z
  .strictObject({
    level: z
      .enum(["debug", "info", "warn", "error", "silent"])
      .default("info")
      .describe("Least level that is written."),
    requests: z.boolean().default(true).describe("One line per request."),
  })
  .prefault({})
  .describe("Log lines, as JSON on standard output.");

const identity = z
  .strictObject({
    workerThreads: integer(1, 64).default(1).describe("Threads that read large requests. They start when needed."),
    workerFromBytes: integer(1_024, 1_073_741_824)
      .default(524_288)
      .describe("Bodies larger than this are read and hashed on a thread, so that they don't delay other requests."),
    tokenThreads: integer(1, 64)
      .default(1)
      .describe("Threads that tokenise prompts of models that have a `tokenizer`; each holds all tokenizers."),
  })
  .prefault({})
  .describe("How prompts are recognised.");

/** The one schema. Defaults live here and nowhere else. */
export const configSchema = z
  .strictObject({
    listen,
    admin,
    engines: enginesSchema,
    engineTls: engineTlsSchema,
    discovery: discoverySchema,
    links: linksSchema,
    policy: policySchema.prefault("kvasir").describe("Policy of every model that names none."),
    models: z
      .record(modelName, modelSchema)
      .default({})
      .describe("Settings per model, by the name under which engines serve it."),
    classes: z
      .record(name, classSchema)
      .default({})
      .describe(`Service classes. ${PREDEFINED_CLASS_NAMES.join(", ")} exist already; the same name replaces one.`),
    keys: z.array(keySchema).max(10_000).default([]).describe("Client keys. None: the gateway is open to everybody."),
    limits: limitsSchema,
    identity,
    record: recordSchema,
    log,
  })
  .describe("Configuration of Kvasir.");

/** A configuration as written: defaults may be missing. */
export type ConfigInput = z.input<typeof configSchema>;
/** A configuration as used: complete, checked, frozen. */
export type Config = z.output<typeof configSchema>;
