import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { HashKey, KEY_BYTES } from "./hashKey.ts";
import { RecordingError } from "./recordingError.ts";

/** Where the key of a recording lies if nobody says otherwise. */
export function keyFileOf(recording: string): string {
  return `${recording}.key`;
}

/** The key in this file; makes both where there is none. Throws RecordingError for what cannot be used. */
export function readOrMakeKey(path: string): HashKey {
  if (!existsSync(path)) {
    // Fails if another process was quicker: then its key is there to be read.
    try {
      writeFileSync(path, `${randomBytes(KEY_BYTES).toString("hex")}\n`, { flag: "wx", mode: 0o600 });
      chmodSync(path, 0o600);
    } catch (cause) {
      if (!existsSync(path)) throw new RecordingError(`${path}: no key can be written there`, { cause });
    }
  }
  return readKey(path);
}

export function readKey(path: string): HashKey {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw new RecordingError(`${path}: the key cannot be read`, { cause });
  }
  if (!new RegExp(`^[0-9a-f]{${2 * KEY_BYTES}}$`, "u").test(text))
    throw new RecordingError(`${path} holds no key: it should be ${2 * KEY_BYTES} hexadecimal digits`);
  return new HashKey(Buffer.from(text, "hex"));
}
