import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFrom } from "#src/config/loadConfig.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { ANONYMOUS, type Client } from "#src/gateway/clients.ts";
import { modelBody, modelListBody } from "#src/gateway/modelList.ts";
import { ModelNames } from "#src/gateway/modelNames.ts";

const served = [
  { id: "big", parent: null, maxModelTokens: 8192 },
  { id: "big", parent: null, maxModelTokens: 8192 },
  { id: "sql", parent: "big", maxModelTokens: null },
];
const names = new ModelNames(
  configFrom({ models: { big: { aliases: ["gpt-4o"] }, gone: { aliases: ["old"] } } }).models,
);

function only(...models: string[]): Client {
  return { ...ANONYMOUS, models: new Set(models) };
}

function ids(client: Client): string[] {
  return [...names.names(served, client)].map(({ id }) => id);
}

function code(run: () => unknown): string {
  try {
    return String(run());
  } catch (caught) {
    assert.ok(caught instanceof RouterError);
    return `${caught.httpStatus} ${caught.code}`;
  }
}

describe("model names", () => {
  it("are the fleet's and the aliases of what is there, each once", () => {
    assert.deepEqual(ids(ANONYMOUS), ["big", "gpt-4o", "sql"]);
  });

  it("are those that the key may use: a model brings its aliases, an alias only itself", () => {
    assert.deepEqual(ids(only("big")), ["big", "gpt-4o"]);
    assert.deepEqual(ids(only("gpt-4o")), ["gpt-4o"]);
    assert.deepEqual(ids(only("sql")), ["sql"]);
  });

  it("are translated, and unknown ones are left to the fleet", () => {
    assert.equal(names.choose("gpt-4o", served, ANONYMOUS), "big");
    assert.equal(names.choose("else", served, ANONYMOUS), "else");
    assert.equal(
      code(() => names.choose("big", served, only("gpt-4o"))),
      "404 model_not_found",
    );
    assert.equal(names.choose("gpt-4o", served, only("gpt-4o")), "big");
  });

  it("may be left out where there is one base model to mean", () => {
    assert.equal(names.choose(null, served, ANONYMOUS), "big");
    assert.equal(
      code(() => names.choose(null, [], ANONYMOUS)),
      "503 no_replica_available",
    );
    const two = [...served, { id: "small", parent: null, maxModelTokens: null }];
    assert.equal(
      code(() => names.choose(null, two, ANONYMOUS)),
      "400 missing_model",
    );
    assert.equal(names.choose(null, two, only("small")), "small");
  });

  it("are listed in OpenAI's shape", () => {
    const list = JSON.parse(modelListBody(names.names(served, ANONYMOUS), 7)) as { data: Record<string, unknown>[] };
    assert.deepEqual(list.data[1], {
      id: "gpt-4o",
      object: "model",
      created: 7,
      owned_by: "kvasir",
      parent: null,
      max_model_len: 8192,
    });
    assert.equal(
      code(() => modelBody(names.names(served, only("sql")), "big", 7)),
      "404 model_not_found",
    );
  });
});
