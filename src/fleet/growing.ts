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

/** An eighth more, since copying is cheap and room that nobody uses is not; at most `most`. */
export function anEighthMore(room: number, most: number): number {
  return Math.min(most, Math.ceil(room * 1.125));
}

/** Buckets of a chained hash table: two thirds to one and a third entries for each. */
export function bucketsFor(entries: number): number {
  return powerOfTwo(Math.ceil((entries * 3) / 4));
}
