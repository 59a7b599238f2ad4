import { existsSync } from "node:fs";
import type { FileHeader } from "../format/frames.ts";
import type { HashKey } from "../format/hashKey.ts";
import { keyFileOf, readKey } from "../format/keyFile.ts";
import { RecordingError } from "../format/recordingError.ts";
import type { RecordingRecord } from "../format/records.ts";
import { MAX_FILES, seriesFile, seriesPath } from "../format/series.ts";
import { readFile, readHeader } from "./readFile.ts";

interface Part {
  readonly path: string;
  readonly header: FileHeader;
}

/** One run of a router, in as many files as there still are of it. */
export class Recording {
  /** In the order in which they were written; never empty. */
  readonly parts: readonly Part[];
  /** Null: it is not there, and hashes stay enciphered. */
  readonly key: HashKey | null;
  /** What is not as it should be, for people. Grows while records are read. */
  readonly remarks: string[] = [];

  /** The run that `path` is a file of. Throws RecordingError. */
  constructor(path: string, keyFile?: string) {
    const own = readHeader(path);
    const base = seriesPath(path);
    this.parts = partsOf(path, base, own);
    this.key = keyOf(keyFile ?? keyFileOf(base), keyFile !== undefined, own, this.remarks);
    if (this.first.part > 0)
      this.remarks.push(
        `the first ${this.first.part} files of this run are gone; it is read from ${this.parts[0]!.path} on`,
      );
  }

  get first(): FileHeader {
    return this.parts[0]!.header;
  }

  /** Whether it goes back to the router's start. */
  get isFromStart(): boolean {
    return this.first.part === 0;
  }

  *records(): Generator<RecordingRecord> {
    for (const [at, { path, header }] of this.parts.entries()) {
      const before = this.parts[at - 1]?.header.part ?? header.part - 1;
      if (header.part !== before + 1)
        throw new RecordingError(`${path} is part ${header.part} of its run, and the part before it is missing`);
      const end = yield* readFile(path, this.key);
      if (end.kind === "cut")
        this.remarks.push(
          `${path} was not finished: it is read up to byte ${end.atByte}, the end of its last whole frame`,
        );
    }
  }
}

function partsOf(path: string, base: string, own: FileHeader): readonly Part[] {
  const parts: Part[] = [];
  for (let age = 0; age < MAX_FILES; age++) {
    const file = seriesFile(base, age);
    if (!existsSync(file)) continue;
    // A file of another run, or none of ours, is none of our business.
    const header = headerIfAny(file);
    if (header?.run === own.run) parts.push({ path: file, header });
  }
  if (parts.length === 0) return [{ path, header: own }];
  return parts.sort((a, b) => a.header.part - b.header.part);
}

function headerIfAny(path: string): FileHeader | null {
  try {
    return readHeader(path);
  } catch (caught) {
    if (caught instanceof RecordingError) return null;
    throw caught;
  }
}

function keyOf(path: string, isAsked: boolean, { keyId }: FileHeader, remarks: string[]): HashKey | null {
  if (!isAsked && !existsSync(path)) {
    remarks.push(
      `there is no key at ${path}: hashes stay enciphered, and policies that go by their value decide otherwise`,
    );
    return null;
  }
  const key = readKey(path);
  if (key.id === keyId) return key;
  throw new RecordingError(`${path} is not the key that this was recorded with`);
}
