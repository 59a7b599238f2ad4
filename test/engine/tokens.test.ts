import { describe, it } from "node:test";
import { engines } from "./engines.ts";
import { assertEqualTokens } from "./tokenEquality.ts";
import { Truth } from "./truth.ts";

describe("tokens of a real engine", () => {
  it("are the router's, over awkward conversations, with the tokenizer of Qwen", async () => {
    await using truth = await Truth.of(engines[0]!);
    await assertEqualTokens(engines[0]!, truth);
  });
});
