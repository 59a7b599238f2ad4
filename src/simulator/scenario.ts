import { readFileSync } from "node:fs";
import { z } from "zod";
import { SpecError } from "./fleetSpec.ts";
import type { Incident } from "./world/runSettings.ts";

const seconds = z.number().min(0).max(1e7);
const Scenario = z.array(
  z.discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("crash"),
      atSeconds: seconds,
      engine: z.int().min(0),
      downSeconds: seconds,
      loadSeconds: seconds,
    }),
    z.strictObject({
      kind: z.literal("slow"),
      atSeconds: seconds,
      engine: z.int().min(0),
      factor: z.number().positive(),
    }),
  ]),
);

/** Reads what befalls which engine when, as JSON. A crash at 0 is a cold start. Throws SpecError. */
export function readScenario(path: string, engines: number): readonly Incident[] {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new SpecError(`${path} is no scenario: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
  return parseScenario(json, path, engines);
}

export function parseScenario(json: unknown, name: string, engines: number): readonly Incident[] {
  const parsed = Scenario.safeParse(json);
  if (!parsed.success) throw new SpecError(`${name} is no scenario:\n${z.prettifyError(parsed.error)}`);
  return parsed.data.map((incident): Incident => {
    const { engine } = incident;
    if (engine >= engines)
      throw new SpecError(`${name}: there is no engine ${engine}; there are ${engines}, from 0 on`);
    const atMs = incident.atSeconds * 1000;
    if (incident.kind === "slow") return { kind: "slow", atMs, engine, factor: incident.factor };
    const { downSeconds, loadSeconds } = incident;
    return { kind: "crash", atMs, engine, downMs: downSeconds * 1000, loadMs: loadSeconds * 1000 };
  });
}
