/** Openers and words of exactly one token (four bytes) each, so that an answer sent back as a prompt has the same tokens. */
const OPENERS = [
  "Well",
  "Then",
  "When",
  "Once",
  "Now,",
  "Yes,",
  "Here",
  "This",
  "Some",
  "Most",
  "Each",
  "Both",
  "That",
  "They",
  "What",
  "Make",
];
const WORDS =
  "the and for can see run add map use any all one two few new old big low top set get put let try ask key log row bit sum job act aim air arc art bag bar bed bow box bus cab cap car cat cod cow cup cut day den dig dog dot dry due ear eat egg end era eye fan far fig fit fix fly fog fox fun gap gas gem gum hat hay hen hit hop hub ice ink jam jar jet joy keg kid kin kit lab lap law leg".split(
    " ",
  );

/** Token `index` of the text that belongs to a seed: the same on every engine, and always four ASCII bytes. */
export function pseudoToken(seed: number, index: number): string {
  const drawn = mix(seed + Math.imul(index + 1, 0x9e3779b9));
  if (index === 0) return OPENERS[drawn % OPENERS.length] ?? "Well";
  return ` ${WORDS[drawn % WORDS.length] ?? "the"}`;
}

export function pseudoText(seed: number, tokens: number): string {
  let text = "";
  for (let index = 0; index < tokens; index++) text += pseudoToken(seed, index);
  return text;
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
