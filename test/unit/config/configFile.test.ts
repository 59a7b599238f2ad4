import assert from "node:assert/strict";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ConfigFile } from "#src/config/configFile.ts";
import { processTimers } from "#src/determinism/timers.ts";

describe("a configuration file", () => {
  let folder = "";
  before(async () => void (folder = await mkdtemp(join(tmpdir(), "kvasir-config-"))));
  after(() => rm(folder, { recursive: true }));

  /** Waits for the next thing that the file reports. */
  function reports(path: string) {
    const waiting: ((report: string) => void)[] = [];
    const seen: string[] = [];
    const report = (text: string) => {
      const next = waiting.shift();
      if (next === undefined) seen.push(text);
      else next(text);
    };
    const file = new ConfigFile(
      path,
      {},
      {
        changed: (config) => report(`connect within ${config.limits.connectMs}`),
        refused: (error) => report(error.message),
      },
      processTimers,
    );
    const next = () =>
      new Promise<string>((resolve, reject) => {
        const first = seen.shift();
        if (first !== undefined) return resolve(first);
        const limit = setTimeout(() => reject(new Error("no report")), 10_000);
        waiting.push((text) => {
          clearTimeout(limit);
          resolve(text);
        });
      });
    return { file, next };
  }

  it("is read again when told, and a bad one is refused with the reason", async () => {
    const path = join(folder, "told.yaml");
    const { file, next } = reports(path);
    await file.reload();
    assert.match(await next(), /ENOENT/);
    await writeFile(path, "limits: {connectMs: 7}");
    await file.reload();
    assert.equal(await next(), "connect within 7");
    await writeFile(path, "limits: {connectMs: no}");
    await file.reload();
    assert.match(await next(), /told\.yaml:1: limits\.connectMs: "no" is not allowed; allowed: 1\.\.600000/);
    file.close();
  });

  it("is read again when it changes, also when another file takes its place", async () => {
    const path = join(folder, "watched.yaml");
    await writeFile(path, "");
    const { file, next } = reports(path);
    file.watch();
    await writeFile(path, "limits: {connectMs: 8}");
    assert.equal(await next(), "connect within 8");
    await writeFile(`${path}.new`, "limits: {connectMs: 9}");
    await rename(`${path}.new`, path);
    assert.equal(await next(), "connect within 9");
    file.close();
  });
});
