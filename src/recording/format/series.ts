/** The files of a recording: 0 is the newest, and has the path as it was given. */
export function seriesFile(path: string, age: number): string {
  return age === 0 ? path : `${path}.${age}`;
}

/** The path that was given, of any file of a recording. */
export function seriesPath(file: string): string {
  return file.replace(/\.\d{1,4}$/u, "");
}

/** More files than a recording may have. */
export const MAX_FILES = 1000;
