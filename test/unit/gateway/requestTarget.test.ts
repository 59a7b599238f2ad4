import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { RouterError } from "#src/errors/routerError.ts";
import { readTarget, refuseControlPaths } from "#src/gateway/requestTarget.ts";

/** The code that `target` is refused with, or "taken". */
function verdict(target: string): string {
  try {
    refuseControlPaths(readTarget(target));
    return "taken";
  } catch (caught) {
    assert.ok(caught instanceof RouterError, String(caught));
    return caught.code;
  }
}

describe("a request target", () => {
  it("is taken as it is where it is plain", () => {
    for (const target of ["/v1/chat/completions", "/v1/models/Qwen%2FQwen3", "/any/path?x=%2e%2e/&y=1", "/", "/v1/x/"])
      assert.equal(verdict(target), "taken", target);
    assert.deepEqual(readTarget("/v1/m%C3%BC?a=b"), {
      path: "/v1/m%C3%BC",
      decodedPath: "/v1/mü",
      target: "/v1/m%C3%BC?a=b",
    });
  });

  it("names no address and climbs nowhere", () => {
    const bad = [
      "http://10.0.0.1/x",
      "//10.0.0.1/x",
      "10.0.0.1:80",
      "*",
      "",
      "/a/../b",
      "/a/./b",
      "/..",
      "/a/%2e%2e/b",
    ];
    const worse = [
      "/a%2f..%2fb",
      "/a//b",
      "/a\\b",
      "/a%5cb",
      "/a%00",
      "/a%252e%252e/b",
      "/a;x=1",
      "/a b",
      "/a%",
      "/a#b",
    ];
    for (const target of [...bad, ...worse]) assert.equal(verdict(target), "invalid_request", target);
    assert.equal(verdict(`/${"a".repeat(9000)}`), "invalid_request");
  });

  it("is not a control route, however it is written", () => {
    const control = [
      "/sleep",
      "/wake_up?level=1",
      "/v1/load_lora_adapter",
      "/v1/unload_lora_adapter",
      "/abort_request",
    ];
    const more = [
      "/flush_cache",
      "/reset_prefix_cache",
      "/update_weights_from_disk",
      "/collective_rpc",
      "/pause",
      "/resume",
    ];
    const rest = ["/release_memory_occupation", "/slots/1?action=save", "/metrics", "/server_info", "/start_profile"];
    const spelled = ["/SLEEP", "/%73leep", "/slee%70/", "/v1/%6Coad_lora_adapter", "/metrics/", "/kv_cache_events"];
    const emulated = ["/emulator/faults", "/emulator/restart"];
    for (const target of [...control, ...more, ...rest, ...spelled, ...emulated])
      assert.equal(verdict(target), "forbidden", target);
  });

  it("that is taken has no dot segment and no second slash in any reading", () => {
    const piece = fc.constantFrom("a", "/", ".", "..", "%2e", "%2f", "%5c", "\\", "%25", "2e", "sleep", "?", ";", "%");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const target = `/${pieces.join("")}`;
        if (verdict(target) !== "taken") return;
        for (let path = target.split("?")[0]!, round = 0; round < 3; round++, path = decodeURIComponent(path)) {
          assert.doesNotMatch(path, /\/\/|\\|\/\.\.?(\/|$)/);
          assert.notEqual(path.replace(/\/$/, ""), "/sleep");
        }
      }),
    );
  });
});
