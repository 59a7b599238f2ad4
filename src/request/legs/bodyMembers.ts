import { OPEN_BRACE } from "../ascii.ts";
import { isForbidden } from "../forbidden.ts";
import { passValue, skipSpace } from "../jsonBytes.ts";
import { Members } from "../jsonMembers.ts";
import { stringText } from "../jsonString.ts";
import { MemberRemoval, type MemberPlace } from "../memberRemoval.ts";
import type { RequestShape } from "../requestShape.ts";
import type { Edit, Span } from "../span.ts";

/** One member of the body's object. */
export interface BodyMember extends MemberPlace {
  readonly name: string;
  /** Where its value starts. */
  readonly value: number;
}

/** The members of a JSON body, found in one walk: what the legs of a split request need beyond a `RequestShape`. */
export interface BodyMembers {
  readonly body: Buffer;
  readonly shape: RequestShape;
  /** Where a member can be inserted. */
  readonly afterBrace: number;
  readonly members: readonly BodyMember[];
}

/** Null: not a JSON object. */
export function readBodyMembers(body: Buffer, shape: RequestShape): BodyMembers | null {
  if (shape.encoding !== "json") return null;
  const hasMark = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  const open = skipSpace(body, hasMark ? 3 : 0);
  if (body[open] !== OPEN_BRACE) return null;
  const walk = new Members(body, open, 0);
  const members: BodyMember[] = [];
  while (walk.next()) {
    const { keyOpen, keyClose, comma, value } = walk;
    walk.at = passValue(body, value, 1, null);
    members.push({ name: stringText(body, keyOpen, keyClose), keyOpen, comma, value, at: walk.at });
  }
  return { body, shape, afterBrace: open + 1, members };
}

/** The value of a member as it is written; of equal names the last counts, as in the engines. Null: there is none. */
export function rawValue({ body, members }: BodyMembers, name: string): string | null {
  const found = members.findLast((member) => member.name === name);
  return found === undefined ? null : body.toString("utf8", found.value, found.at);
}

export interface LegChanges {
  /** Members to leave out, beside those that no client may send. */
  readonly without: ReadonlySet<string>;
  /** Members to put in, e.g. `"max_tokens":1,"stream":false`; empty: none. Their names should be in `without`. */
  readonly put: string;
  /** The name under which the engine serves the model; null leaves the client's. */
  readonly model: string | null;
  /** Ask for the usage chunk of a stream. */
  readonly askUsage: boolean;
}

/** The edits that make one leg's body of the client's. Sorted and apart. */
export function legEdits({ shape, afterBrace, members }: BodyMembers, changes: LegChanges): Edit[] {
  const spans: Span[] = [];
  const removal = new MemberRemoval(spans);
  let kept = 0;
  for (const member of members) {
    if (changes.without.has(member.name) || isForbidden(member.name)) removal.remove(member);
    else {
      removal.keep(member);
      kept++;
    }
  }
  removal.end();
  // Forbidden members of inner objects, such as `sampling_params`.
  for (const inner of shape.strippedSpans) if (!within(inner, spans)) spans.push(inner);
  const edits: Edit[] = spans.map(({ start, end }) => ({ start, end, replacement: "" }));
  const { modelSpan, usageEdit } = shape;
  if (changes.model !== null && changes.model !== shape.model && modelSpan !== null && !within(modelSpan, spans))
    edits.push({ ...modelSpan, replacement: JSON.stringify(changes.model) });
  if (changes.askUsage && usageEdit !== null && !within(usageEdit, spans)) edits.push(usageEdit);
  if (changes.put !== "")
    edits.push({ start: afterBrace, end: afterBrace, replacement: kept > 0 ? `${changes.put},` : changes.put });
  return edits.sort((a, b) => a.start - b.start || a.end - b.end);
}

function within({ start, end }: Span, spans: readonly Span[]): boolean {
  return spans.some((outer) => start < outer.end && end > outer.start);
}
