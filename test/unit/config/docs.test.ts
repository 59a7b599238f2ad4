import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { configReference } from "#src/config/configDocs.ts";
import { configJsonSchema } from "#src/config/jsonSchema.ts";
import { parseConfig } from "#src/config/loadConfig.ts";

const root = new URL("../../../", import.meta.url);

/** What a formatter may change: padding of table cells and rulers. */
function loose(markdown: string): string {
  return markdown
    .replace(/-{3,}/g, "---")
    .replace(/[ \t]+/g, " ")
    .replace(/\n+/g, "\n")
    .trim();
}

describe("what is generated from the schema", () => {
  it("kvasir.schema.json is current (`kvasir config schema > kvasir.schema.json`)", async () => {
    assert.deepEqual(JSON.parse(await readFile(new URL("kvasir.schema.json", root), "utf8")), configJsonSchema);
  });

  it("docs/configuration.md is current (`kvasir config reference` prints its last part)", async () => {
    const page = await readFile(new URL("docs/configuration.md", root), "utf8");
    assert.ok(loose(page).endsWith(loose(configReference())));
  });

  it("the examples of docs/configuration.md load", async () => {
    const page = await readFile(new URL("docs/configuration.md", root), "utf8");
    const examples = [...page.matchAll(/```yaml\n([^]*?)```/g)].map(([, text = ""]) => text);
    assert.ok(examples.length > 0);
    for (const example of examples)
      parseConfig(example, { KVASIR_ADMIN_TOKEN: "0123456789", ENGINE_KEY: "0123456789" }, "example");
  });
});
