const NARROWEST = 40;

/** Breaks a text between words into lines of at most `columns`; a word that is longer stays whole, to be copied. */
export function wrap(text: string, columns: number): string[] {
  const width = Math.max(NARROWEST, columns);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
