/** Names that clients use → names that the fleet serves. */
export type ModelAliases = ReadonlyMap<string, string>;

/** Follows aliases of aliases; a circle ends where it began, so the name stays what the client said. */
export function servedModelName(name: string, aliases: ModelAliases): string {
  let served = name;
  for (let steps = 0; steps <= aliases.size; steps++) {
    const next = aliases.get(served);
    if (next === undefined) return served;
    served = next;
  }
  return name;
}
