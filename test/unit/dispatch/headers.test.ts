import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { endToEnd, headerCount, headerValue } from "#src/dispatch/headers.ts";
import { parseOrigin } from "#src/dispatch/origin.ts";
import { buildRequestHead } from "#src/dispatch/requestHead.ts";
import { retryAfterMs } from "#src/dispatch/retryAfter.ts";

describe("headers", () => {
  test("are found whatever their case, the first of several", () => {
    const headers = ["X-A", "1", "x-a", "2"];
    assert.equal(headerValue(headers, "x-a"), "1");
    assert.equal(headerCount(headers, "x-a"), 2);
    assert.equal(headerValue(headers, "x-b"), null);
  });

  test("that Connection names stay behind, in all of several Connection headers", () => {
    const headers = [
      "Connection",
      "X-A, close",
      "x-a",
      "1",
      "connection",
      " x-B ",
      "X-B",
      "2",
      "X-C",
      "3",
      "Close",
      "4",
    ];
    assert.deepEqual(endToEnd(headers, new Set()), ["X-C", "3", "Close", "4"]);
  });
});

describe("retryAfterMs", () => {
  const now = Date.UTC(2026, 0, 1);
  const cases: [headers: string[], expected: number | null][] = [
    [["Retry-After", "7"], 7000],
    [["retry-after", "0.5"], 500],
    [["Retry-After", "7", "Retry-After-Ms", "250"], 250],
    [["Retry-After", "Thu, 01 Jan 2026 00:00:09 GMT"], 9000],
    [["Retry-After", "Thu, 01 Jan 2020 00:00:00 GMT"], 0],
    [["Retry-After", "soon"], null],
    [["Retry-After", "-1"], null],
    [[], null],
  ];
  for (const [headers, expected] of cases) {
    test(headers.join(" ") || "nothing", () => {
      assert.equal(retryAfterMs(headers, now), expected);
    });
  }
});

describe("parseOrigin", () => {
  test("takes hosts, ports, IPv6 and prefixes apart", () => {
    assert.deepEqual(parseOrigin("http://10.0.0.1:8000"), {
      tls: false,
      hostname: "10.0.0.1",
      port: 8000,
      host: "10.0.0.1:8000",
      pathPrefix: "",
    });
    assert.deepEqual(parseOrigin("https://[fd00::1]/engines/a/"), {
      tls: true,
      hostname: "fd00::1",
      port: 443,
      host: "[fd00::1]",
      pathPrefix: "/engines/a",
    });
    assert.throws(() => parseOrigin("ftp://x"), TypeError);
  });
});

describe("buildRequestHead", () => {
  const head = {
    method: "POST",
    target: "/v1/x?y",
    clientHeaders: [],
    origin: parseOrigin("http://e/p"),
    requestId: "id",
    engineKey: null,
    rankHeader: null,
    bodyBytes: 0,
  };

  test("a length of zero is stated where a body could be expected, and only there", () => {
    assert.equal(
      buildRequestHead(head),
      "POST /p/v1/x?y HTTP/1.1\r\nHost: e\r\nX-Request-Id: id\r\nContent-Length: 0\r\n\r\n",
    );
    assert.doesNotMatch(buildRequestHead({ ...head, method: "GET" }), /Content-Length/u);
    assert.match(buildRequestHead({ ...head, method: "DELETE", bodyBytes: 3 }), /Content-Length: 3\r\n/u);
  });
});
