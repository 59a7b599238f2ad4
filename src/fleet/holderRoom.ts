/** The bound on (block, replica) pairs over the whole fleet. What events tell has precedence over what is modelled. */
export class HolderRoom {
  readonly max: number;
  /** Pairs that are told by events. */
  precise = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** How many may be modelled. */
  get most(): number {
    return this.max - this.precise;
  }
}
