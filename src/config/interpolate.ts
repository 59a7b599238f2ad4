/** A `${NAME}` that could not be filled in. */
export interface MissingVariable {
  readonly path: readonly (string | number)[];
  readonly variable: string;
}

const VARIABLE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/**
 * Replaces `${NAME}` and `${NAME:-default}` in string values; keys, numbers and the like stay as they are. `$${` stands
 * for a literal `${`. What a variable holds is not looked at again.
 */
export function interpolate(
  value: unknown,
  environment: Readonly<Record<string, string | undefined>>,
): { value: unknown; missing: readonly MissingVariable[] } {
  const missing: MissingVariable[] = [];
  return { value: walk(value, []), missing };

  function walk(node: unknown, path: readonly (string | number)[]): unknown {
    if (typeof node === "string") return fill(node, path);
    if (Array.isArray(node)) return node.map((entry, index) => walk(entry, [...path, index]));
    if (typeof node !== "object" || node === null) return node;
    return Object.fromEntries(Object.entries(node).map(([key, entry]) => [key, walk(entry, [...path, key])]));
  }

  function fill(text: string, path: readonly (string | number)[]): string {
    return text.replace(VARIABLE, (match, variable: string | undefined, fallback: string | undefined) => {
      if (variable === undefined) return "${";
      const found = environment[variable];
      if (found !== undefined && (found !== "" || fallback === undefined)) return found;
      if (fallback !== undefined) return fallback;
      missing.push({ path, variable });
      return match;
    });
  }
}
