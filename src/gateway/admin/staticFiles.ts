import { readFile } from "node:fs/promises";
import type { AdminAnswer } from "./adminRequest.ts";

const FILES: ReadonlyMap<string, { readonly file: string; readonly contentType: string }> = new Map([
  ["", { file: "index.html", contentType: "text/html; charset=utf-8" }],
  ["status.js", { file: "status.js", contentType: "text/javascript; charset=utf-8" }],
  ["icon.svg", { file: "icon.svg", contentType: "image/svg+xml" }],
  ["status.css", { file: "status.css", contentType: "text/css; charset=utf-8" }],
]);

const FOLDER = new URL("../../../web/", import.meta.url);

/** A file of the status page; null: there is none of this name. The list is fixed, so no path can lead elsewhere. */
export async function staticFile(path: string): Promise<AdminAnswer | null> {
  const known = FILES.get(path);
  if (known === undefined) return null;
  const body = await readFile(new URL(known.file, FOLDER));
  return { status: 200, contentType: known.contentType, body };
}
