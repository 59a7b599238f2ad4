import type { Engine } from "./kit/engine.ts";

/** The sum of a metric's series whose labels contain `label`, as the engine itself publishes it. */
export async function metricOf({ url }: Engine, name: string, label = ""): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  let sum = 0;
  for (const line of text.split("\n"))
    if (line.startsWith(`${name}{`) && line.includes(label)) sum += Number(line.slice(line.lastIndexOf(" ") + 1));
  return sum;
}
