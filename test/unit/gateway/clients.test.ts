import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFrom } from "#src/config/loadConfig.ts";
import type { ConfigInput } from "#src/config/schema.ts";
import { RouterError } from "#src/errors/routerError.ts";
import { hashClientKey, newClientKey } from "#src/gateway/clientKey.ts";
import { ANONYMOUS, Clients } from "#src/gateway/clients.ts";

function clientsOf(keys: ConfigInput["keys"], previous: Clients | null = null, nowMs = 0): Clients {
  return new Clients(configFrom({ keys: keys ?? [] }).keys, nowMs, previous);
}

function refused(run: () => unknown): string {
  try {
    run();
  } catch (caught) {
    assert.ok(caught instanceof RouterError);
    return caught.code;
  }
  return "not refused";
}

describe("client keys", () => {
  const keys = ["a", "b"].map((name) => ({ name, key: newClientKey() }));
  const configured = keys.map(({ name, key }) => ({ name, hash: hashClientKey(key) }));

  it("say who asks, by either header", () => {
    const clients = clientsOf(configured);
    for (const { name, key } of keys) {
      assert.equal(clients.authenticate(`Bearer ${key}`, null).name, name);
      assert.equal(clients.authenticate(`bearer  ${key} `, null).name, name);
      assert.equal(clients.authenticate(null, key).name, name);
    }
  });

  it("that are missing, wrong or only alike are refused", () => {
    const clients = clientsOf(configured);
    const [{ key } = { key: "" }] = keys;
    for (const authorization of [null, "", "Bearer", "Bearer x", `Basic ${key}`, `Bearer ${key}x`, `Bearer ${key} x`])
      assert.equal(
        refused(() => clients.authenticate(authorization, null)),
        "unauthorized",
        String(authorization),
      );
    assert.equal(
      refused(() => clients.authenticate(null, configured[0]?.hash ?? "")),
      "unauthorized",
    );
  });

  it("are not needed where none is configured", () => {
    assert.equal(clientsOf([]).authenticate(null, null), ANONYMOUS);
    assert.equal(clientsOf([]).authenticate("Bearer anything", null), ANONYMOUS);
  });

  it("are random, and their hash is the documented one", () => {
    assert.notEqual(newClientKey(), newClientKey());
    assert.ok(newClientKey().length >= 43);
    assert.equal(hashClientKey("password"), "sha256:5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8");
  });

  it("keep what is left of their limits through a reload, unless the limit changed", () => {
    const limited = (requestsPerMinute: number) => [{ ...configured[0]!, requestsPerMinute }];
    const first = clientsOf(limited(2));
    const bearer = `Bearer ${keys[0]?.key}`;
    assert.equal(first.authenticate(bearer, null).requests?.take(2, 0), 0);
    const same = clientsOf(limited(2), first, 1);
    assert.notEqual(same.authenticate(bearer, null).requests?.take(1, 1), 0);
    const wider = clientsOf(limited(5), same, 2);
    assert.equal(wider.authenticate(bearer, null).requests?.take(5, 2), 0);
  });
});
