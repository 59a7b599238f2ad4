import { z } from "zod";
import { explainIssue, pathText } from "#src/config/explainIssue.ts";
import type { RouterError } from "#src/errors/routerError.ts";
import { PRIORS } from "../hardware/stepTimes.ts";
import { badEndpoint, defaultName, normalEngineUrl } from "./engineUrl.ts";
import { KvEventsInput, toKvEventEndpoints } from "./kvEventsInput.ts";
import { HandoffInput, toHandoff } from "./handoffInput.ts";
import type { EngineEndpoint } from "./replicaSpec.ts";

const label = z.string().min(1).max(256).optional();

/** An endpoint as people write it, in a file or to the admin API. */
const EndpointInput = z.strictObject({
  url: z.string().max(2048),
  /** No blanks or quotes: it appears in headers and metric labels. */
  name: z
    .string()
    .regex(/^[\w.:[\]/-]{1,256}$/, "allowed are 1..256 letters, digits and _ . : [ ] / -")
    .optional(),
  engine: z.enum(["vllm", "sglang", "trtllm", "llamacpp"]).nullish(),
  role: z.enum(["mixed", "prefill", "decode", "draft"]).optional(),
  labels: z.strictObject({ host: label, nvlinkDomain: label, rack: label, zone: label, gpu: label }).optional(),
  handoff: HandoffInput.optional(),
  apiKey: z
    .string()
    .regex(/^[\x21-\x7e]{1,4096}$/, "allowed are 1..4096 printable characters without blanks")
    .nullish(),
  dataParallelRanks: z.number().int().min(1).max(1024).nullish(),
  maxRunningRequests: z.number().int().min(1).max(1_048_576).nullish(),
  kvCapacityTokens: z.number().int().min(1).max(1_000_000_000).nullish(),
  prior: z
    .string()
    .refine((prior) => PRIORS.has(prior), { message: `known are ${[...PRIORS.keys()].join(", ")}` })
    .nullish(),
  kvEvents: KvEventsInput.nullable().optional(),
});

/** Reads an endpoint: a URL, or an object with `url` and more. Throws RouterError `invalid_request` that names the key. */
export function parseEndpoint(input: unknown): EngineEndpoint {
  const read = EndpointInput.safeParse(typeof input === "string" ? { url: input } : input, { reportInput: true });
  if (!read.success) throw refused(read.error.issues[0]);
  const { labels = {}, ...given } = read.data;
  const url = normalEngineUrl(given.url);
  return {
    url,
    name: given.name ?? defaultName(url),
    engine: given.engine ?? null,
    role: given.role ?? "mixed",
    labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== undefined)),
    ...(given.handoff === undefined ? {} : { handoff: toHandoff(given.handoff) }),
    apiKey: given.apiKey ?? null,
    dataParallelRanks: given.dataParallelRanks ?? null,
    prior: given.prior ?? null,
    ...(typeof given.maxRunningRequests !== "number" ? {} : { maxRunningRequests: given.maxRunningRequests }),
    ...(typeof given.kvCapacityTokens !== "number" ? {} : { kvCapacityTokens: given.kvCapacityTokens }),
    ...(given.kvEvents === undefined ? {} : { kvEvents: given.kvEvents && toKvEventEndpoints(given.kvEvents) }),
  };
}

/** In the words of the configuration's own checks, where the schema knows them. */
function refused(issue: z.core.$ZodIssue | undefined): RouterError {
  if (issue === undefined || issue.code === "custom" || issue.code === "invalid_format") {
    return badEndpoint(issue?.path.join(".") || "engine", `${issue?.message ?? "invalid"}.`);
  }
  const [problem] = explainIssue(issue, ["engines", 0]);
  if (problem === undefined || problem.path.length === 0)
    return badEndpoint("engine", "allowed: a URL, or a mapping with a url.");
  const key = pathText(problem.path);
  return badEndpoint(key, problem.text.slice(`${key}: `.length));
}

/** Reads a list of endpoints; the error says which entry. */
export function parseEndpoints(input: unknown, maxEndpoints: number): EngineEndpoint[] {
  if (!Array.isArray(input)) throw badEndpoint("engines", "not a list; each entry is a URL or a mapping with a url.");
  if (input.length > maxEndpoints)
    throw badEndpoint("engines", `${input.length} entries; at most ${maxEndpoints} are allowed.`);
  return input.map((entry: unknown, at) => {
    try {
      return parseEndpoint(entry);
    } catch (caught) {
      throw badEndpoint(`engines[${at}]`, caught instanceof Error ? caught.message : "invalid");
    }
  });
}
