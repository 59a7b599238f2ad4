import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import * as fc from "fast-check";
import { ConfigError } from "#src/config/configError.ts";
import { configFrom, parseConfig } from "#src/config/loadConfig.ts";
import { configWarnings } from "#src/config/warnings.ts";
import { configJsonSchema } from "#src/config/jsonSchema.ts";
import { LINK_KINDS } from "#src/fleet/links/linkKinds.ts";
import { redacted } from "#src/config/redacted.ts";

/** The lines of the error that `text` gives. */
function problems(text: string, environment: Record<string, string> = {}): string[] {
  try {
    parseConfig(text, environment, "kvasir.yaml");
  } catch (caught) {
    assert.ok(caught instanceof ConfigError, String(caught));
    return caught.message.split("\n");
  }
  return [];
}

describe("a configuration", () => {
  it("needs nothing: every key has a default", () => {
    const config = parseConfig("", {});
    assert.equal(config.admin.host, "127.0.0.1");
    assert.deepEqual(config.policy, { name: "kvasir", options: {} });
    assert.ok(config.limits.firstTokenMs > 120_000);
    assert.deepEqual(configFrom({}), config);
  });

  it("warns of engines with a role that gets no requests, with their line", () => {
    const text = "engines:\n  - http://a:1\n  - url: http://b:1\n    role: draft\n";
    const [warning, ...more] = configWarnings(parseConfig(text, {}, "kvasir.yaml"));
    assert.match(warning ?? "", /^kvasir\.yaml:4: engines\.1\.role: draft: /);
    assert.deepEqual(more, []);
  });

  it("warns of an engine that prefills for nobody, unless others may come from elsewhere", () => {
    const lonely = "engines: [{url: 'http://a:1', role: prefill}, {url: 'http://b:1'}]";
    assert.match(configWarnings(parseConfig(lonely, {}))[0] ?? "", /engines\.0\.role: prefill: .*no engine/);
    const paired = "engines: [{url: 'http://a:1', role: prefill}, {url: 'http://b:1', role: decode}]";
    for (const text of [paired, `${lonely}\ndiscovery: {files: [{path: x.yaml}]}`])
      assert.deepEqual(configWarnings(parseConfig(text, {})), []);
  });

  it("says of links what they are where nothing is configured", () => {
    const levels = configJsonSchema.properties?.["links"]?.properties ?? {};
    assert.deepEqual(Object.keys(levels), Object.keys(LINK_KINDS));
    for (const [level, kind] of Object.entries(LINK_KINDS))
      for (const [key, value] of Object.entries(kind)) {
        const said = levels[level]?.properties?.[key]?.description ?? "";
        assert.match(said, new RegExp(`Absent: \`?${value}\`?\\.$`), `${level}.${key}`);
      }
  });

  it("is frozen all the way down", () => {
    const config = parseConfig("models: {m: {aliases: [a]}}", {});
    assert.throws(() => Object.assign(config.limits, { connectMs: 1 }), TypeError);
    assert.throws(() => config.models["m"]!.aliases.push("b"), TypeError);
  });

  it("takes an engine as a URL or as an object, IPv6 too", () => {
    const { engines } = parseConfig(
      "engines: ['http://[fd00::1]:8000', {url: 'https://b:1/prefix', role: decode}]",
      {},
    );
    assert.deepEqual(
      engines.map(({ url, role }) => [url, role]),
      [
        ["http://[fd00::1]:8000", "mixed"],
        ["https://b:1/prefix", "decode"],
      ],
    );
  });
});

describe("a bad configuration", () => {
  it("is refused with line, key, value and allowed range", () => {
    assert.deepEqual(problems("log: {level: info}\nlimits:\n  connectMs: 0\n"), [
      "kvasir.yaml:3: limits.connectMs: 0 is not allowed; allowed: 1..600000",
    ]);
    assert.deepEqual(problems("limits: {retries: '2'}"), [
      'kvasir.yaml:1: limits.retries: "2" is not allowed; allowed: 0..16',
    ]);
    assert.match(
      problems("policy: fastest")[0] ?? "",
      /policy: "fastest" is not allowed; allowed: kvasir, round-robin, /,
    );
    assert.match(problems("engines: [{url: 'http://a', role: chef}]")[0] ?? "", /engines\.0\.role: "chef" .*prefill/);
  });

  it("names the nearest key for an unknown one", () => {
    assert.deepEqual(problems("limits: {\n  conectMs: 5 }"), [
      "kvasir.yaml:2: limits.conectMs: unknown key; did you mean connectMs?",
    ]);
    assert.match(problems("zzzzzzzzzz: 1")[0] ?? "", /unknown key; known: admin, classes, /);
  });

  it("says all that is wrong at once", () => {
    assert.equal(problems("limits: {connectMs: 0, idleMs: 0}\nlog: {level: loud}").length, 3);
  });

  it("may not repeat a key", () => {
    assert.deepEqual(problems("log: {}\nlimits: {}\nlog: {}"), ["kvasir.yaml:3: Map keys must be unique"]);
  });

  it("may not open the admin listener to the network without a token", () => {
    for (const host of ["0.0.0.0", "::", "10.0.0.1"])
      assert.match(problems(`admin: {host: '${host}'}`)[0] ?? "", /admin\.host: .* unless admin\.token is set/);
    for (const host of ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
      assert.deepEqual(problems(`admin: {host: '${host}'}`), []);
    assert.deepEqual(problems("admin: {host: '0.0.0.0', token: 12345678-abc}"), []);
  });

  it("may not name one thing twice or a class that is not there", () => {
    assert.match(problems("engines: ['http://a', 'http://a']")[0] ?? "", /engines\.1\.url: .*engines\.0/);
    assert.match(problems("models: {a: {aliases: [x]}, b: {aliases: [x]}}")[0] ?? "", /models\.b\.aliases\.0: "x"/);
    assert.match(problems("models: {a: {}, b: {aliases: [a]}}")[0] ?? "", /models\.b\.aliases\.0: "a"/);
    assert.match(problems("models: {a: {class: gold}}")[0] ?? "", /models\.a\.class: "gold" .* interactive, standard/);
    assert.deepEqual(problems("models: {a: {class: gold}}\nclasses: {gold: {}}"), []);
    assert.match(
      problems("classes: {gold: {guaranteedShare: 0.8}, silver: {guaranteedShare: 0.2}}")[0] ?? "",
      /silver.guaranteedShare.*1 at most for all/,
    );
  });

  it("does not grow without end through aliases", () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"];
    for (const [at, name] of "bcdefgh".split("").entries())
      bomb.push(`${name}: &${name} [${Array(9).fill(`*${"abcdefg"[at]}`).join(", ")}]`);
    assert.equal(problems(bomb.join("\n")).length, 1);
    for (const text of ["&a [*a]", "models: &m {m: *m}"])
      assert.deepEqual(problems(text), ["kvasir.yaml: an alias stands for a value that contains itself"]);
  });
});

describe("environment variables", () => {
  it("fill strings, with defaults, and stay out of everything else", () => {
    const text = "admin: {host: '${HOST:-::1}', token: '${TOKEN}'}\nengines: ['http://${E}:8000']";
    const config = parseConfig(text, { TOKEN: "t-0123456789", E: "a" });
    assert.equal(config.admin.host, "::1");
    assert.equal(config.admin.token?.reveal(), "t-0123456789");
    assert.equal(config.engines[0]?.url, "http://a:8000");
    assert.match(problems("${KEY}: 1", { KEY: "log" })[0] ?? "", /unknown key/);
  });

  it("that are missing are named with their key", () => {
    assert.deepEqual(problems("log: {}\nadmin:\n  token: ${NOPE}"), [
      "kvasir.yaml:3: admin.token: the environment variable NOPE is not set",
    ]);
  });

  it("are not read again from what they hold, and $${ is literal", () => {
    const { models } = parseConfig("models: {m: {aliases: ['${A}', '$${A}']}}", { A: "${B}", B: "no" });
    assert.deepEqual(models["m"]?.aliases, ["${B}", "${A}"]);
  });

  it("leave every text without a reference as it is", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 100 }).filter((text) => !text.includes("${")),
        (alias) => {
          const { models } = parseConfig(JSON.stringify({ models: { "some/model": { aliases: [alias] } } }), {});
          assert.deepEqual(models["some/model"]?.aliases, alias === "some/model" ? [] : [alias]);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("a secret", () => {
  const secret = "very-secret-value";
  const config = parseConfig(`admin: {token: ${secret}}\nengines: [{url: 'http://a', apiKey: ${secret}}]`, {});

  it("does not print", () => {
    assert.equal(config.admin.token?.reveal(), secret);
    for (const printed of [inspect(config, { depth: 9 }), JSON.stringify(config), String(config.admin.token)])
      assert.ok(!printed.includes(secret), printed);
    assert.ok(!JSON.stringify(redacted(config)).includes(secret));
  });

  it("is not quoted when it is refused", () => {
    const [line = ""] = problems("admin: {token: abcdefg}");
    assert.match(line, /admin\.token: this value is not allowed; allowed: a string of 8/);
    assert.ok(!line.includes("abcdefg"));
  });

  it("key hashes are redacted too", () => {
    const hash = `sha256:${"ab".repeat(32)}`;
    const shown = JSON.stringify(redacted(parseConfig(`keys: [{name: a, hash: '${hash}'}]`, {})));
    assert.ok(!shown.includes(hash) && shown.includes("[secret]"));
  });
});
