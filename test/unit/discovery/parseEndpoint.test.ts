import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { parseEndpoint, parseEndpoints } from "#src/discovery/parseEndpoint.ts";
import { RouterError } from "#src/errors/routerError.ts";

function refusal(input: unknown): RouterError {
  try {
    parseEndpoint(input);
  } catch (caught) {
    assert.ok(caught instanceof RouterError);
    assert.equal(caught.code, "invalid_request");
    return caught;
  }
  throw new assert.AssertionError({ message: `accepted ${JSON.stringify(input)}` });
}

describe("an endpoint", () => {
  it("is complete from a URL alone", () => {
    assert.deepEqual(parseEndpoint("http://10.0.0.1:8000"), {
      url: "http://10.0.0.1:8000",
      name: "10.0.0.1:8000",
      engine: null,
      role: "mixed",
      labels: {},
      apiKey: null,
      dataParallelRanks: null,
      prior: null,
    });
  });

  it("keeps all that is said of it", () => {
    const full = {
      url: "https://gpu-1.example/engine",
      name: "gpu-1",
      engine: "sglang",
      role: "decode",
      labels: { host: "gpu-1", rack: "r7" },
      apiKey: "engine-key",
      dataParallelRanks: 8,
      prior: "qwen3-32b/h200_tp2",
    };
    assert.deepEqual(parseEndpoint(full), full);
  });

  it("has one spelling of its address, and a name from it", () => {
    const spellings: [string, string, string][] = [
      ["http://10.0.0.1:8000/", "http://10.0.0.1:8000", "10.0.0.1:8000"],
      ["HTTP://Engine.Example:80//", "http://engine.example", "engine.example:80"],
      ["https://engine.example", "https://engine.example", "engine.example:443"],
      ["http://h:1/a/b/", "http://h:1/a/b", "h:1/a/b"],
      ["http://[FD00:0:0::0001]:8000", "http://[fd00::1]:8000", "[fd00::1]:8000"],
      ["http://[::1]:8000/v/", "http://[::1]:8000/v", "[::1]:8000/v"],
      ["http://[::ffff:10.0.0.1]:8000", "http://[::ffff:a00:1]:8000", "[::ffff:a00:1]:8000"],
    ];
    for (const [given, url, name] of spellings) {
      const endpoint = parseEndpoint(given);
      assert.equal(endpoint.url, url);
      assert.equal(endpoint.name, name);
      assert.deepEqual(parseEndpoint(url), endpoint, "the spelling is stable");
    }
  });

  it("takes any IPv4 or IPv6 address", () => {
    const origins = fc.tuple(
      fc.oneof(
        fc.ipV4(),
        fc.ipV6().map((ip) => `[${ip}]`),
      ),
      fc.integer({ min: 1, max: 65_535 }),
    );
    fc.assert(
      fc.property(origins, ([host, port]) => {
        const { url, name } = parseEndpoint(`http://${host}:${port}`);
        assert.ok(URL.canParse(url));
        assert.ok(name.endsWith(`:${port}`));
        assert.equal(parseEndpoint({ url, name }).name, name, "a default name is a valid name");
      }),
    );
  });

  it("is refused with the key at fault", () => {
    const bad: [unknown, string, RegExp][] = [
      ["10.0.0.1:8000", "url", /not a URL|not http/],
      ["engine.example", "url", /http:\/\/10\.0\.0\.1:8000/],
      ["ftp://h:1", "url", /not http or https/],
      ["http://fd00::1:8000", "url", /\[fd00::1\]/],
      ["http://[fe80::1%25eth0]:8000", "url", /zone/],
      ["http://[fe80::1%eth0]:8000", "url", /zone/],
      ["http://h:0", "url", /port 0/],
      ["http://h:70000", "url", /not a URL/],
      ["http://h:1/?model=x", "url", /query/],
      ["http://h:1/#x", "url", /query or fragment/],
      ["", "url", /not a URL/],
      [{ name: "x" }, "url", /is missing; allowed: an http or https origin/],
      [{ url: "http://h:1", urll: 1 }, "urll", /^urll: unknown key; did you mean url\?$/],
      [{ url: "http://h:1", name: "two words" }, "name", /allowed are/],
      [{ url: "http://h:1", engine: "tgi" }, "engine", /^engine: "tgi" is not allowed; allowed: vllm, sglang/],
      [
        { url: "http://h:1", labels: { shelf: "1" } },
        "labels.shelf",
        /unknown key; known: gpu, host, nvlinkDomain, rack, zone/,
      ],
      [{ url: "http://h:1", dataParallelRanks: 0 }, "dataParallelRanks", /: 0 is not allowed; allowed: 1\.\.1024$/],
      [{ url: "http://h:1", prior: "gpt/abacus" }, "prior", /known are/],
      [{ url: "http://h:1", apiKey: "a\r\nb" }, "apiKey", /printable/],
      [42, "engine", /a URL, or a mapping with a url/],
      [null, "engine", /a URL, or a mapping with a url/],
    ];
    for (const [input, param, message] of bad) {
      const error = refusal(input);
      assert.equal(error.param, param, JSON.stringify(input));
      assert.match(error.message, message);
    }
  });

  it("never shows credentials that were written into a URL", () => {
    for (const url of [
      "http://user:hunter2@h:1",
      "http://hunter2@h:1",
      "http://user:hunter2@h:99999",
      "x://a:hunter2@h",
    ]) {
      const error = refusal(url);
      assert.doesNotMatch(error.message, /hunter2/);
    }
    assert.match(refusal("http://user:hunter2@h:1").message, /credentials/);
    assert.doesNotMatch(refusal({ url: "http://h:1", apiKey: "hunter2 " }).message, /hunter2/);
  });
});

describe("a list of endpoints", () => {
  it("is bounded, and names the entry at fault", () => {
    assert.throws(() => parseEndpoints(["http://h:1", "http://h:2", "http://h:3"], 2), /3 entries; at most 2/);
    assert.throws(() => parseEndpoints(["http://h:1", "nonsense"], 5), /engines\[1\].*not a URL/);
    assert.throws(() => parseEndpoints({ a: 1 }, 5), /not a list/);
    assert.throws(() => parseEndpoints(null, 5), /not a list/);
    assert.deepEqual(parseEndpoints([], 5), []);
  });
});
