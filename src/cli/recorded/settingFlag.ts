import { InvalidArgumentError } from "commander";

export type Setting = readonly [name: string, value: number];

/** `name=value`, one more of them. */
export function setting(text: string, before: readonly Setting[]): readonly Setting[] {
  const [name = "", value = ""] = text.split("=", 2);
  if (name === "" || value.trim() === "" || Number.isNaN(Number(value)))
    throw new InvalidArgumentError("Write for example interferenceWeight=1 or limits.queueMs=5000.");
  return [...before, [name, Number(value)]];
}
