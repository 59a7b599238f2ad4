import { z } from "zod";
import { Secret } from "./secret.ts";

/** A whole number from `min` to `max`, both allowed. */
export function integer(min: number, max: number): z.ZodInt {
  return z.int().min(min).max(max);
}

/** A number from `min` to `max`, both allowed. */
export function number(min: number, max: number): z.ZodNumber {
  return z.number().min(min).max(max);
}

export const MAX_MS = 86_400_000;

/** Name or address of a listener; 253 is the longest name that DNS has. */
export const host = z.string().min(1).max(253);
export const port = integer(0, 65_535);
export const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
  .meta({ allowed: "1..128 letters, digits, dots, dashes or underscores, starting with a letter or digit" });
export const modelName = z.string().min(1).max(512);
export const filePath = z.string().min(1).max(4096);

export const secret = z
  .string()
  .min(8)
  .max(4096)
  .meta({ secret: true })
  .transform((value) => new Secret(value));

/** Origin of an engine, with an optional path prefix and nothing behind it. */
export const engineUrl = z.string().refine(isEngineUrl).meta({
  allowed: "an http or https origin such as http://10.0.0.1:8000 or http://[fd00::1]:8000, without query or user",
});

function isEngineUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  const plain = url.search === "" && url.hash === "" && url.username === "" && url.password === "";
  return plain && (url.protocol === "http:" || url.protocol === "https:");
}

const ZMQ = String.raw`tcp://(?:\*|[\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}|ipc://\S+`;

/** Of a socket that engines have for KV events. */
export const zmqAddress = z
  .string()
  .max(512)
  .regex(new RegExp(`^(?:${ZMQ})$`))
  .meta({ allowed: "an address such as tcp://*:5557 or tcp://10.0.0.1:5557, or an ipc:// path" });

export const kvEventSource = z
  .string()
  .max(512)
  .regex(new RegExp(`^(?:${ZMQ}|pull)$`))
  .meta({ allowed: "an address such as tcp://*:5557 or tcp://10.0.0.1:5557, an ipc:// path, or pull" });
