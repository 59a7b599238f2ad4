import type { EngineKind } from "#src/discovery/replicaSpec.ts";
import { FINDINGS, type FindingId } from "./catalogue.ts";

/** `error`: requests fail, or routing decides on what is not so. `warn`: it decides on less than it could know. */
export type Severity = "error" | "warn" | "info";

/** A sort of finding. */
export interface FindingKind {
  readonly severity: Severity;
  /** What it does to routing. */
  readonly effect: string;
  /** What mends it: the same for every engine, or by kind. */
  readonly mend: string | Readonly<Partial<Record<EngineKind, string>>>;
}

/** Something that was found, at one replica or among those of a model. */
export interface Finding {
  readonly id: FindingId;
  readonly severity: Severity;
  /** Name of the endpoint it is about; null: several, or none. */
  readonly replica: string | null;
  /** The model whose replicas differ, where that is it. */
  readonly model: string | null;
  /** What was seen. */
  readonly message: string;
  readonly effect: string;
  /** Null: nothing is known for this kind of engine. */
  readonly mend: string | null;
}

/** Where something was found. */
export interface Place {
  readonly replica?: string;
  readonly model?: string;
  /** Of the engines concerned; absent where they are of several kinds. */
  readonly kind?: EngineKind | undefined;
}

export function found(id: FindingId, { replica, model, kind }: Place, message: string): Finding {
  const { severity, effect, mend }: FindingKind = FINDINGS[id];
  return {
    id,
    severity,
    replica: replica ?? null,
    model: model ?? null,
    message,
    effect,
    mend: typeof mend === "string" ? mend : ((kind === undefined ? allMends(mend) : mend[kind]) ?? null),
  };
}

function allMends(mend: Readonly<Partial<Record<EngineKind, string>>>): string {
  return Object.entries(mend)
    .map(([kind, text]) => `${kind}: ${text}`)
    .join("; ");
}
