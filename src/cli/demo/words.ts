import type { Random } from "#src/determinism/random.ts";

const WORDS = (
  "time year people way day thing man world life hand part child eye place work week case point company number group " +
  "problem fact good new first last long great little own other old right big high different small large next early " +
  "young important few public bad same able cache token prefix prompt replica batch queue route price step stream " +
  "model layer head block page slot rack link engine fleet router answer question reason example"
).split(" ");

/** Plain text of about `bytes` bytes; the same random source in the same state gives the same text. */
export function someText(bytes: number, random: Random): string {
  const words: string[] = [];
  for (let length = 0; length < bytes;) {
    const word = WORDS[random.below(WORDS.length)] ?? "word";
    words.push(word);
    length += word.length + 1;
  }
  return words.join(" ").slice(0, bytes);
}
