import assert from "node:assert/strict";
import { it } from "node:test";
import { ListenError } from "#src/gateway/listenError.ts";

it("a port that is taken is named with the key and the flag of its own listener", () => {
  const cause = Object.assign(new Error("taken"), { code: "EADDRINUSE", address: "127.0.0.1", port: 9091 });
  assert.match(new ListenError("admin", cause).message, /^Port 9091 on 127\.0\.0\.1.*admin\.port.*--admin-port/);
  assert.match(new ListenError("listen", cause).message, /^Port 9091 .*listen\.port .*--port/);
});
