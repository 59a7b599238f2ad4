import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./ascii.ts";
import { isWord, passValue } from "./jsonBytes.ts";
import { Elements, Members } from "./jsonMembers.ts";
import { stringEnd } from "./jsonString.ts";
import { DIGEST_BEGIN, Mark, MARK, type PlanWriter } from "./prompt.ts";

/*
 * Canonical text of conversations: chat messages, Responses items, Anthropic messages. A message is its role, its
 * content, and what else it holds, in the client's order; text parts count as their text. White space between tokens,
 * nulls, empty lists and cache hints do not count, so that turn n+1 begins with exactly the bytes of turn n.
 */

const ROLES: readonly (readonly [role: string, mark: number])[] = [
  ["user", Mark.user],
  ["assistant", Mark.assistant],
  ["tool", Mark.tool],
  ["system", Mark.system],
  ["developer", Mark.developer],
];

/** Parts that stand for something else than their bytes. */
const MEDIA_TYPE = /image|audio|video|file|document/;

/** The list at `at` of messages or items; a bare string is one user message. Returns the end. */
export function planConversation(bytes: Buffer, at: number, depth: number, plan: PlanWriter): number {
  if (bytes[at] !== OPEN_BRACKET) return planMessageText(bytes, at, depth, Mark.user, plan);
  const messages = new Elements(bytes, at, depth);
  while (messages.next()) {
    messages.at =
      bytes[messages.at] === OPEN_BRACE
        ? planMessage(bytes, messages.at, depth + 1, plan)
        : passValue(bytes, messages.at, depth + 1, plan);
  }
  return messages.at;
}

/** A message whose role is known from its place: Anthropic's `system`, Responses' `instructions` and bare `input`. */
export function planMessageText(bytes: Buffer, at: number, depth: number, role: number, plan: PlanWriter): number {
  if (isEmpty(bytes, at)) return passValue(bytes, at, depth, null);
  plan.mark(Mark.message);
  plan.mark(role);
  plan.mark(Mark.member);
  return planContent(bytes, at, depth, plan);
}

function planMessage(bytes: Buffer, at: number, depth: number, plan: PlanWriter): number {
  plan.mark(Mark.message);
  // The role goes first wherever it stands in the message.
  const rolePlace = plan.reserve();
  const members = new Members(bytes, at, depth);
  while (members.next()) {
    const value = members.value;
    if (members.keyIs("role") && bytes[value] === QUOTE) {
      const close = stringEnd(bytes, value);
      const mark = roleMark(bytes, value + 1, close);
      if (mark === null) plan.settle(rolePlace, value + 1, close);
      else plan.settle(rolePlace, MARK, mark);
      members.at = close + 1;
    } else if (members.keyIs("content") || members.keyIs("output")) {
      plan.mark(Mark.member);
      members.at = planContent(bytes, value, depth + 1, plan);
    } else if (isPlainMessageType(bytes, members)) {
      members.at = passValue(bytes, value, depth + 1, null);
    } else {
      members.at = planMember(bytes, members, depth, plan);
    }
  }
  return members.at;
}

function roleMark(bytes: Buffer, start: number, end: number): number | null {
  for (const [role, mark] of ROLES) if (isWord(bytes, start, end, role)) return mark;
  return null;
}

/** A string, a list of parts, or one part. */
function planContent(bytes: Buffer, at: number, depth: number, plan: PlanWriter): number {
  const first = bytes[at];
  if (first === QUOTE) {
    const close = stringEnd(bytes, at);
    plan.copy(at + 1, close);
    return close + 1;
  }
  if (first === OPEN_BRACE) return planPart(bytes, at, depth, plan);
  if (first !== OPEN_BRACKET) return passValue(bytes, at, depth, isEmpty(bytes, at) ? null : plan);
  const parts = new Elements(bytes, at, depth);
  while (parts.next()) {
    if (parts.count > 1) plan.mark(Mark.part);
    parts.at = planContent(bytes, parts.at, depth + 1, plan);
  }
  return parts.at;
}

function planPart(bytes: Buffer, at: number, depth: number, plan: PlanWriter): number {
  const place = plan.reserve();
  const stepsBefore = plan.steps.length;
  let textOpen = -1;
  let textClose = -1;
  let typeOpen = -1;
  let typeClose = -1;
  const members = new Members(bytes, at, depth);
  while (members.next()) {
    const value = members.value;
    const string = bytes[value] === QUOTE;
    if (string && members.keyIs("text")) {
      textOpen = value + 1;
      textClose = stringEnd(bytes, value);
      members.at = textClose + 1;
    } else if (string && members.keyIs("type")) {
      typeOpen = value + 1;
      typeClose = stringEnd(bytes, value);
      members.at = typeClose + 1;
    } else if (members.keyIs("content")) {
      plan.mark(Mark.member);
      members.at = planContent(bytes, value, depth + 1, plan);
    } else {
      members.at = planMember(bytes, members, depth, plan);
    }
  }
  const plainText = textOpen >= 0 && plan.steps.length === stepsBefore;
  if (plainText) plan.copy(textOpen, textClose);
  else {
    const media = typeOpen >= 0 && MEDIA_TYPE.test(bytes.toString("latin1", typeOpen, typeClose));
    if (media) plan.settle(place, DIGEST_BEGIN, 0);
    else plan.settle(place, MARK, Mark.part);
    if (typeOpen >= 0) plan.copy(typeOpen, typeClose);
    plan.mark(Mark.member);
    if (textOpen >= 0) plan.copy(textOpen, textClose);
    if (media) plan.endDigest();
  }
  return members.at;
}

/** Any other member: its name and its value, unless it says nothing or only advises the cache. */
function planMember(bytes: Buffer, members: Members, depth: number, plan: PlanWriter): number {
  const value = members.value;
  if (isEmpty(bytes, value) || members.keyIs("cache_control")) return passValue(bytes, value, depth + 1, null);
  plan.mark(Mark.member);
  plan.copy(members.keyOpen, members.keyClose + 1);
  return passValue(bytes, value, depth + 1, plan);
}

/** A list of objects (tools) as it stands, without cache hints: clients move those from turn to turn. */
export function planObjects(bytes: Buffer, at: number, depth: number, plan: PlanWriter): number {
  if (bytes[at] !== OPEN_BRACKET) return passValue(bytes, at, depth, isEmpty(bytes, at) ? null : plan);
  const objects = new Elements(bytes, at, depth);
  while (objects.next()) {
    plan.mark(Mark.part);
    if (bytes[objects.at] !== OPEN_BRACE) {
      objects.at = passValue(bytes, objects.at, depth + 1, plan);
      continue;
    }
    const members = new Members(bytes, objects.at, depth + 1);
    while (members.next()) members.at = planMember(bytes, members, depth + 1, plan);
    objects.at = members.at;
  }
  return objects.at;
}

/** `null`, `[]`, `""`: clients that echo a message back add such members. */
function isEmpty(bytes: Buffer, at: number): boolean {
  const first = bytes[at];
  const second = bytes[at + 1];
  return (
    (first === 0x6e && second === 0x75) /* nu */ ||
    (first === OPEN_BRACKET && second === 0x5d) ||
    (first === QUOTE && second === QUOTE)
  );
}

/** Responses may say `"type": "message"` or leave it out. */
function isPlainMessageType(bytes: Buffer, members: Members): boolean {
  const { value } = members;
  return members.keyIs("type") && isWord(bytes, value, value + 9, '"message"');
}
