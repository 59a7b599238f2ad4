/** Cells of one line, without quoting: none of the traces' columns needs it. */
export function cells(line: string): string[] {
  return line.split(",").map((cell) => cell.trim());
}

/** Where each wanted column is, by the header. Throws for one that is missing. */
export function columns<Name extends string>(header: string, wanted: readonly Name[]): Record<Name, number> {
  const names = cells(header).map((name) => name.toLowerCase());
  const places = wanted.map((name) => [name, names.indexOf(name.toLowerCase())] as const);
  for (const [name, at] of places) if (at === -1) throw new Error(`the column "${name}" is missing`);
  return Object.fromEntries(places) as Record<Name, number>;
}

/** A whole number of tokens. Throws for anything else. */
export function tokenCount(cell: string | undefined): number {
  const count = Number(cell);
  if (cell === undefined || cell === "" || !Number.isInteger(count) || count < 0)
    throw new Error(`${JSON.stringify(cell)} is no number of tokens`);
  return count;
}
