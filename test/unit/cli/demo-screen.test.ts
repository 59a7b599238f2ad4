import assert from "node:assert/strict";
import { test } from "node:test";
import { screen, summaryLine, type DemoView } from "#src/cli/demo/screen.ts";

const view: DemoView = {
  fleet: "2 emulated engines",
  gatewayUrl: "http://127.0.0.1:8080",
  statusUrl: "http://127.0.0.1:9091/",
  curl: "curl http://127.0.0.1:8080/v1/models",
  elapsedS: 10,
  sent: 25,
  inFlight: 3,
  answered: 20,
  failed: 2,
  ttftP50Ms: 123.4,
  ttftP99Ms: 12_345,
  cachedShare: 0.637,
  outputTokens: 500,
  queued: 1,
  replicas: [
    { name: "a", state: "ready", requests: 16, kvUsage: 0.5, pendingPrefillTokens: 12_000, answered: 12 },
    { name: "b", state: "quarantined", requests: 0, kvUsage: null, pendingPrefillTokens: 0, answered: 8 },
  ],
};

test("the summary says what was measured, with units", () => {
  assert.equal(
    summaryLine(view),
    "20 answered (2.0/s), 2 failed · 3 in flight, 1 queued · TTFT p50 123 ms, p99 12.3 s · 64% of prompt tokens cached · 50.0 tokens/s",
  );
});

test("the screen has a line per replica, with bars relative to the busiest", () => {
  const lines = screen(view, 120);
  const [a, b] = ["a ", "b "].map((name) => lines.find((line) => line.startsWith(name)) ?? "");
  assert.match(a ?? "", /█{24}\s+16\s+50%\s+12,000\s+12\s+ready/);
  assert.match(b ?? "", /░{24}\s+0\s+–\s+0\s+8\s+quarantined/);
  assert.ok(lines.some((line) => line.includes(view.curl)));
  assert.ok(lines.some((line) => line.includes(view.statusUrl)));
});

test("before the first answer nothing is claimed", () => {
  const start = { ...view, elapsedS: 0, answered: 0, failed: 0, ttftP50Ms: null, ttftP99Ms: null, cachedShare: 0 };
  assert.match(summaryLine(start), /0 answered \(0\.0\/s\), 0 failed · .* TTFT p50 –, p99 –/);
});

test("nothing of the summary is lost on a narrow terminal", () => {
  for (const columns of [40, 80, 120, 200]) {
    const lines = screen(view, columns);
    const told = lines.slice(6, lines.indexOf("", 6));
    assert.equal(told.join(" · "), summaryLine(view));
    for (const line of told) assert.ok(line.length <= columns, `${columns}: ${line}`);
  }
});
