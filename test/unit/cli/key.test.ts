import assert from "node:assert/strict";
import { test } from "node:test";
import { keyCommand } from "#src/cli/key.ts";
import { parseConfig } from "#src/config/loadConfig.ts";

function create(name: string): string[] {
  const lines: string[] = [];
  const command = keyCommand();
  for (const each of [command, ...command.commands]) each.exitOverride().configureOutput({ writeErr: () => undefined });
  const { log } = console;
  console.log = (line: string) => lines.push(line);
  try {
    command.parse(["create", "--name", name], { from: "user" });
  } finally {
    console.log = log;
  }
  return lines;
}

test("what is printed for a new key loads", () => {
  const { keys } = parseConfig(create("search-team").join("\n"), {});
  assert.equal(keys[0]?.name, "search-team");
});

test("a name that the configuration would refuse is refused at once", () => {
  for (const name of ["", " ", "two words", "a: b", "#"]) assert.throws(() => create(name), /letters, digits/, name);
});
