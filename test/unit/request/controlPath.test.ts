import assert from "node:assert/strict";
import { it } from "node:test";
import { isEngineControlPath } from "#src/request/apiKind.ts";

it("isEngineControlPath knows what only an operator may call", () => {
  const control = [
    "/abort_request",
    "/inference/v1/abort_requests",
    "/v1/load_lora_adapter",
    "/unload_lora_adapter",
    "/flush_cache",
    "/reset_prefix_cache?x=1",
    "/sleep?level=1",
    "/wake_up/",
    "/collective_rpc",
    "/release_memory_occupation",
    "/update_weights_from_disk",
    "/slots/0?action=erase",
    "/server_info",
  ];
  for (const path of control) assert.ok(isEngineControlPath(path), path);
  for (const path of ["/v1/chat/completions", "/v1/models", "/tokenize", "/v1/sleepy", "/x/flush_cache", "/"]) {
    assert.ok(!isEngineControlPath(path), path);
  }
});
