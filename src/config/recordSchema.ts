import { z } from "zod";
import { filePath, integer } from "./schemaParts.ts";

const MIB = 1024 * 1024;

export const recordSchema = z
  .strictObject({
    file: filePath
      .optional()
      .describe("Where to record to: decisions and what they came from, without prompts. Absent: nothing is recorded."),
    keyFile: filePath
      .optional()
      .describe(
        "Key by which hashes and names in recordings are enciphered; made if it is not there. Absent: the file's name with `.key` added.",
      ),
    maxBytes: integer(MIB, 1024 ** 4)
      .default(256 * MIB)
      .describe("Size at which a file is finished and the next one begins."),
    maxFiles: integer(1, 1000).default(8).describe("Files that are kept, the one being written included."),
    bufferBytes: integer(MIB, 1024 * MIB)
      .default(8 * MIB)
      .describe(
        "Memory for what a slow disk has not taken. Past it records are given up and counted, never a request.",
      ),
  })
  .prefault({})
  .describe("Recording of traffic for `kvasir replay`. Changing it takes a restart.");
