/** A number as Python prints a float: whole ones with `.0`. */
export function pythonFloat(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : String(value);
}
