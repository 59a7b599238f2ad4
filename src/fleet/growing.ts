/** A copy of `array` with room for `length` elements; the new ones are zero. */
export function grownUint32(array: Uint32Array<ArrayBuffer>, length: number): Uint32Array<ArrayBuffer> {
  const grown = new Uint32Array(length);
  grown.set(array);
  return grown;
}

/** The least power of two that is not below `value`. */
export function powerOfTwo(value: number): number {
  let power = 1;
  while (power < value) power *= 2;
  return power;
}
