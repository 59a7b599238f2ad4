/** Something that happens at one moment of virtual time. Handling it changes the world and returns what follows from it. */
export interface SimEvent<World> {
  /** Read when the event is queued; not before the moment at which it follows from another. */
  readonly atMs: number;
  /** Among events of one moment, least first; then in the order of queueing. */
  readonly priority: number;
  handle(world: World): readonly SimEvent<World>[];
}

export const NOTHING: readonly never[] = [];
