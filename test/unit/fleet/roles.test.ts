import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Fleet } from "#src/fleet/fleet.ts";
import { base, endpoint, profile } from "./samples.ts";

function fleetOf(roles: Readonly<Record<string, "mixed" | "prefill" | "decode" | "draft">>, models = ["m"]): Fleet {
  const fleet = new Fleet();
  fleet.applyEndpoints(
    "list",
    Object.entries(roles).map(([name, role]) => endpoint(name, { role })),
    0,
  );
  for (const name of Object.keys(roles)) fleet.applyProfile(name, profile({ models: models.map((id) => base(id)) }), 0);
  return fleet;
}

function said(fleet: Fleet): string | undefined {
  fleet.tick(1);
  return fleet.conditions.list().find(({ key }) => key === "role_not_serving")?.message;
}

describe("a model whose replicas all have a role that serves nobody", () => {
  it("is a condition that names model and roles", () => {
    assert.equal(
      said(fleetOf({ "a:1": "draft", "b:1": "draft" })),
      "No replica serves requests by itself, and no two as a pair, for m (draft).",
    );
  });

  it("is none where one replica serves alone", () => {
    assert.equal(said(fleetOf({ "a:1": "draft", "b:1": "mixed" })), undefined);
  });

  it("ends when an engine's role is changed", () => {
    const fleet = fleetOf({ "a:1": "draft" });
    assert.ok(said(fleet));
    fleet.applyEndpoints("list", [endpoint("a:1", { role: "mixed" })], 2);
    assert.equal(said(fleet), undefined);
  });
});
