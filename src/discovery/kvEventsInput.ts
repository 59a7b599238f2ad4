import { z } from "zod";
import type { KvEventEndpoints } from "./replicaSpec.ts";

const ZMQ_ADDRESS = /^(?:tcp:\/\/(?:\*|[\w.-]+|\[[\da-fA-F:.]+\]):(\d{1,5})|ipc:\/\/\S+)$/;
const ALLOWED = "an address such as tcp://*:5557 or tcp://10.0.0.1:5557, or an ipc:// path";

function isZmqAddress(address: string): boolean {
  const match = ZMQ_ADDRESS.exec(address);
  if (match === null) return false;
  const port = match[1] === undefined ? 1 : Number(match[1]);
  return port >= 1 && port <= 65_535;
}

/** Where an engine publishes KV events, as people write it. */
export const KvEventsInput = z.strictObject({
  endpoint: z
    .string()
    .max(512)
    .refine((address) => address === "pull" || isZmqAddress(address), { message: `allowed is ${ALLOWED}, or pull` }),
  replayEndpoint: z
    .string()
    .max(512)
    .refine(isZmqAddress, { message: `allowed is ${ALLOWED}` })
    .nullish(),
  topic: z.string().max(512).optional(),
  bind: z.boolean().optional(),
});

export function toKvEventEndpoints(input: z.infer<typeof KvEventsInput>): KvEventEndpoints {
  const { endpoint, replayEndpoint, topic, bind } = input;
  return { endpoint, replayEndpoint: replayEndpoint ?? null, topic: topic ?? "", ...(bind === true ? { bind } : {}) };
}
