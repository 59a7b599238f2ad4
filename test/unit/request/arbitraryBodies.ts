import * as fc from "fast-check";

const space = fc.constantFrom("", "", "", " ", "\n", "\t ", " \r\n ");

/** One way to write a string in JSON: each character as it is, or escaped in one of the ways there are. */
function stringText(value: string): fc.Arbitrary<string> {
  const units = value.split("");
  return fc
    .array(fc.nat(3), { minLength: units.length, maxLength: units.length })
    .map((ways) => `"${units.map((unit, index) => unitText(unit, ways[index]!)).join("")}"`);
}

function unitText(unit: string, way: number): string {
  const code = unit.charCodeAt(0);
  const surrogate = code >= 0xd800 && code <= 0xdfff;
  if (way === 3 || surrogate) return `\\u${code.toString(16).padStart(4, "0")}`;
  if (way === 2 && unit === "/") return "\\/";
  return JSON.stringify(unit).slice(1, -1);
}

const word = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(
    "model",
    '"model":"x"',
    "\\",
    '\\"',
    "a\\\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "rid",
    "😀",
    "x".repeat(60),
  ),
);

const scalar = fc.oneof(
  fc.constantFrom("true", "false", "null", "0", "-0", "1e3", "1E+2", "-2.5e-3", "12345678901234567890"),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  word.chain(stringText),
);

const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4, withCrossShrink: true }, scalar, tie("list"), tie("object")),
  list: fc.array(fc.tuple(space, tie("value"), space), { maxLength: 4 }).map((items) => {
    return `[${items.map((item) => item.join("")).join(",") || " "}]`;
  }),
  object: fc
    .array(fc.tuple(space, word.chain(stringText), space, space, tie("value"), space), { maxLength: 4 })
    .map(membersText),
}));

function membersText(members: readonly (readonly [string, string, string, string, string, string])[]): string {
  return `{${members.map(([a, key, b, c, member, d]) => `${a}${key}${b}:${c}${member}${d}`).join(",")}}`;
}

/** Keys that the reader knows, and some that only look like them. */
const key = fc.constantFrom(
  "model",
  "model",
  "stream",
  "max_tokens",
  "max_completion_tokens",
  "n",
  "user",
  "stream_options",
  "messages",
  "tools",
  "temperature",
  "Model",
  "model ",
  "kv_transfer_params",
  "bootstrap_room",
  "remote_host",
  "rid",
  "data_parallel_rank",
  "vllm_xargs",
);

const messageList = fc
  .array(
    fc.record({
      role: fc.constantFrom("user", "assistant", "critic"),
      content: fc.oneof(word, fc.array(fc.record({ type: fc.constantFrom("text", "image_url"), text: word }))),
    }),
    { maxLength: 3 },
  )
  .map((list) => JSON.stringify(list));

/** `model` is mostly a string, or nothing would be left to compare. */
const member = key.chain((name) =>
  fc.tuple(
    space,
    fc.oneof({ weight: 3, arbitrary: fc.constant(name) }, { weight: 1, arbitrary: word }).chain(stringText),
    space,
    space,
    name === "model"
      ? fc.string({ minLength: 1, maxLength: 8 }).chain(stringText)
      : fc.oneof(value, name === "messages" ? messageList : value),
    space,
  ),
);

/** JSON text of a request as no sane client writes it: odd escapes, white space anywhere, equal keys twice. */
export const oddBody: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom("", "\ufeff"), space, fc.array(member, { maxLength: 8 }), space)
  .map(([mark, before, members, after]) => `${mark}${before}${membersText(members)}${after}`);
