import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { converse, type ConversationTotals } from "./conversations.ts";
import { engines } from "./engines.ts";
import { setUp } from "./routerSetup.ts";

const CONVERSATIONS = { conversations: 14, turns: 5, atOnce: 4, seed: 9 };

const share = ({ cachedTokens, cacheableTokens }: ConversationTotals): number => cachedTokens / cacheableTokens;

describe("conversations over a real fleet", () => {
  it("find 98 % of what perfect knowledge would find, and clearly more than round robin", async (test) => {
    const { blockTokens } = engines[0]!;
    await using kvasir = await setUp(engines);
    const own = await converse(kvasir.url, { ...CONVERSATIONS, salt: "kvasir" }, blockTokens);
    await using roundRobin = await setUp(engines, { policy: "round-robin" });
    const other = await converse(roundRobin.url, { ...CONVERSATIONS, salt: "round-robin" }, blockTokens);
    test.diagnostic(`kvasir ${JSON.stringify(own)}, round robin ${JSON.stringify(other)}`);
    assert.ok(share(own) >= 0.98, `kvasir finds ${share(own)}`);
    assert.ok(own.cachedTokens >= 1.2 * other.cachedTokens, `round robin finds ${share(other)}`);
  });
});
