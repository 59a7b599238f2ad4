import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../../..");
const agents = readFileSync(join(root, "AGENTS.md"), "utf8");
/** From the outermost inwards. */
const rooms = [...agents.matchAll(/^\| `src\/(\w+)\/`/gm)].map(([, room = ""]) => room);

interface Override {
  readonly files: readonly string[];
  readonly rules: Readonly<Record<string, unknown>>;
}

/** Rooms that the linter lets no file of `room` import. */
function forbidden(room: string, overrides: readonly Override[]): string[] {
  const own = overrides.find(
    ({ files, rules }) => files.includes(`src/${room}/**`) && "no-restricted-imports" in rules,
  );
  const text = JSON.stringify(own?.rules["no-restricted-imports"] ?? []);
  return [...text.matchAll(/"#src\/(\w+)\/\*\*"/g)].map(([, name = ""]) => name);
}

describe("the rooms of AGENTS.md", () => {
  it("are the folders of src", () => {
    const folders = readdirSync(join(root, "src")).filter((name) => statSync(join(root, "src", name)).isDirectory());
    assert.deepEqual(rooms.toSorted(), folders.toSorted());
  });

  it("are in the order that the linter enforces: none may import from those above it", () => {
    // JSON with comments is YAML with comments once these are YAML's.
    const lint = parse(readFileSync(join(root, ".oxlintrc.json"), "utf8").replace(/^(\s*)\/\//gm, "$1#")) as {
      overrides: Override[];
    };
    for (const [at, room] of rooms.entries()) {
      const names = forbidden(room, lint.overrides).filter((name) => rooms.includes(name));
      assert.deepEqual(names.toSorted(), rooms.slice(0, at).toSorted(), room);
    }
  });

  it("have unit tests under their own name", () => {
    const tested = readdirSync(join(root, "test/unit"));
    for (const name of tested) assert.ok([...rooms, "behaviours", "repository"].includes(name), `test/unit/${name}`);
  });

  it("come with folders that exist", () => {
    for (const [, path = ""] of agents.matchAll(/`((?:web|bench|deploy|docs|test)\/[\w/]*)/g))
      assert.ok(existsSync(join(root, path)), path);
  });
});
