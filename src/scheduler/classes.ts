/** What a request of this class is promised, and how it ranks while it waits. */
export interface ServiceClass {
  readonly name: string;
  /** Higher goes first while requests wait, but for what lower classes are guaranteed. */
  readonly priority: number;
  readonly ttftTargetMs: number;
  readonly tpotTargetMs: number;
  /** What missing a target is worth against other classes; 1 is the standard. */
  readonly weight: number;
  /** Share of tokens, 0..1, that this class gets at least while it waits, whatever higher classes want. */
  readonly guaranteedShare: number;
  /** Longest wait in the router; absent: that of the queue. */
  readonly queueMs?: number | undefined;
  /** Whether a request that will miss its TTFT target is refused rather than answered late. */
  readonly shedLate?: boolean;
}

export const DEFAULT_CLASS = "standard";

/**
 * Targets: an answer that starts within half a second and runs at 20 tokens/s feels immediate; two seconds and ten
 * tokens/s are still read along; batch work has a target only so that it is late at some point.
 */
export const PREDEFINED_CLASSES: readonly ServiceClass[] = [
  { name: "interactive", priority: 2, ttftTargetMs: 500, tpotTargetMs: 50, weight: 2, guaranteedShare: 0.05 },
  { name: DEFAULT_CLASS, priority: 1, ttftTargetMs: 2_000, tpotTargetMs: 100, weight: 1, guaranteedShare: 0.05 },
  { name: "batch", priority: 0, ttftTargetMs: 60_000, tpotTargetMs: 1_000, weight: 0.25, guaranteedShare: 0.05 },
];

/** The classes by name. A configured class replaces the predefined one of its name. */
export class ClassTable {
  readonly #byName: ReadonlyMap<string, ServiceClass>;
  readonly #default: ServiceClass;

  constructor(configured: readonly ServiceClass[] = []) {
    const byName = new Map([...PREDEFINED_CLASSES, ...configured].map((each) => [each.name, each]));
    this.#byName = byName;
    this.#default = byName.get(DEFAULT_CLASS)!;
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** An unknown name gets the standard class: names were checked where they came in, but a reload may drop one. */
  get(name: string): ServiceClass {
    return this.#byName.get(name) ?? this.#default;
  }

  all(): readonly ServiceClass[] {
    return [...this.#byName.values()];
  }
}
