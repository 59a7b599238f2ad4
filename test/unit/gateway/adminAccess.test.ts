import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret } from "#src/config/secret.ts";
import { adminAccess } from "#src/gateway/admin/adminAccess.ts";
import { HttpHead } from "#src/gateway/http/httpRequest.ts";

function access(headers: Record<string, string>, token?: string, target = "/status"): string {
  const head = new HttpHead({
    method: "GET",
    target,
    headers: Object.entries(headers).flat(),
    remoteAddress: "127.0.0.1",
    bodyBytes: 0,
    arrivedMs: 0,
  });
  return adminAccess(head, token === undefined ? undefined : new Secret(token))?.code ?? "granted";
}

describe("access to the admin listener", () => {
  it("with a token takes that token and nothing else", () => {
    assert.equal(access({ authorization: "Bearer right-token" }, "right-token"), "granted");
    for (const authorization of ["Bearer wrong-token", "Bearer right-token2", "Bearer ", "right-token", ""])
      assert.equal(access({ authorization }, "right-token"), "unauthorized", authorization);
    assert.equal(access({}, "right-token"), "unauthorized");
  });

  it("without a token is for programs of this machine, not for pages in its browsers", () => {
    for (const host of ["127.0.0.1:9091", "localhost:9091", "[::1]:9091"])
      assert.equal(access({ host, origin: `http://${host}` }), "granted");
    assert.equal(access({ host: "localhost:9091" }), "granted");
    assert.equal(access({ host: "rebound.example:9091" }), "forbidden");
    assert.equal(access({ host: "localhost:9091", origin: "https://evil.example" }), "forbidden");
    assert.equal(access({ host: "localhost:9091", origin: "null" }), "forbidden");
    assert.equal(access({}), "forbidden");
  });

  it("lets balancers ask whether the router is well", () => {
    for (const path of ["/healthz", "/readyz"]) assert.equal(access({}, "right-token", path), "granted");
  });
});
