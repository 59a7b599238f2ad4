import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ConfigError } from "#src/config/configError.ts";
import { configFrom } from "#src/config/loadConfig.ts";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";
import { chat, FAST, MODEL, setUp, until } from "./gatewaySetup.ts";

const KVASIR = join(import.meta.dirname, "../../bin/kvasir.mjs");

describe("a reload", () => {
  it("changes engines, policy, aliases and limits without dropping a stream", async () => {
    await using setup = await setUp([{ timeScale: 1 }]);
    const second = await startEmulatedEngine(FAST);
    try {
      const config = (input: object) =>
        configFrom({ engines: [setup.engines[0]!.url, second.url], listen: { port: 0 }, admin: { port: 0 }, ...input });
      const stream = await chat(setup.url, { stream: true, max_tokens: 60 });
      await setup.router.reload(config({ policy: "round-robin", models: { [MODEL]: { aliases: ["new-name"] } } }));
      await until("the new engine is there", () => setup.router.fleet.pool(MODEL).length === 2);
      const answer = await chat(setup.url, { model: "new-name" });
      assert.equal(answer.status, 200);
      assert.equal(setup.router.decisions.recent(1)[0]?.policy, "round-robin");
      assert.match(await stream.text(), /data: \[DONE\]\n\n$/);
      await setup.router.reload(config({ limits: { bodyBytes: 10 } }));
      assert.equal((await chat(setup.url, {})).status, 413);
    } finally {
      await second.stop();
    }
  });

  it("that is refused changes nothing and says so", async () => {
    await using setup = await setUp([{}], { policy: "random" });
    const bad = configFrom({ policy: { name: "random", options: { nope: 1 } } });
    await assert.rejects(setup.router.reload(bad), ConfigError);
    setup.router.configRefused(new ConfigError(["kvasir.yaml:1: bad"]));
    const { conditions } = (await (await fetch(`${setup.adminUrl}/readyz`)).json()) as {
      conditions: { condition: string; message: string }[];
    };
    assert.equal(conditions.find(({ condition }) => condition === "config_refused")?.message, "kvasir.yaml:1: bad");
    const metrics = await (await fetch(`${setup.adminUrl}/metrics`)).text();
    assert.match(metrics, /^kvasir_condition\{condition="config_refused",replica=""\} 1$/m);
    assert.equal((await chat(setup.url, {})).status, 200);
  });
});

describe("kvasir serve", () => {
  let folder = "";
  let engine: EmulatedEngine;
  const running = new Set<ChildProcess>();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kvasir-serve-"));
    engine = await startEmulatedEngine({ ...FAST, timeScale: 1 });
  });

  after(async () => {
    for (const child of running) child.kill("SIGKILL");
    await engine.stop();
    await rm(folder, { recursive: true });
  });

  function kvasir(...args: string[]) {
    const child = spawn(process.execPath, [KVASIR, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    const output = { text: "" };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output.text += text));
    }
    const exit = once(child, "close").then(([code]) => {
      running.delete(child);
      return code as number | null;
    });
    return { child, output, exit };
  }

  async function serving(...args: string[]) {
    const served = kvasir("serve", ...args);
    const url = await until("it listens", () => /listens on (\S+), admin on (\S+)/.exec(served.output.text));
    const [, clientUrl = "", adminUrl = ""] = url;
    await until("it is ready", async () => (await fetch(`${clientUrl}/readyz`)).ok);
    return { ...served, clientUrl, adminUrl };
  }

  it("needs no file, and drains on SIGTERM: not ready first, streams finish, then it exits", async () => {
    const flags = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];
    const { child, clientUrl, adminUrl, exit } = await serving("--engine", engine.url, ...flags);
    const stream = await chat(clientUrl, { stream: true, max_tokens: 120 });
    assert.equal(stream.status, 200);
    child.kill("SIGTERM");
    await until("it is not ready", async () => (await fetch(`${adminUrl}/readyz`)).status === 503);
    await assert.rejects(chat(clientUrl, {}), "no new connections");
    assert.match(await stream.text(), /data: \[DONE\]\n\n$/);
    assert.equal(await exit, 0);
  });

  it("ends what outlives the grace time, with an error that can be retried", async () => {
    const path = join(folder, "grace.yaml");
    const text = `engines: ["${engine.url}"]\nlisten: {host: 127.0.0.1, port: 0}\nadmin: {port: 0}\nlimits: {drainGraceMs: 100}\n`;
    await writeFile(path, text);
    const { child, clientUrl, exit } = await serving("-c", path);
    const stream = await chat(clientUrl, { stream: true, max_tokens: 5_000 });
    child.kill("SIGTERM");
    const received = await stream.text();
    assert.match(received, /"code":"shutting_down"/);
    assert.ok(!received.includes("[DONE]"));
    assert.equal(await exit, 0);
  });

  it("ends at once on a second signal", async () => {
    const flags = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];
    const { child, clientUrl, adminUrl, exit } = await serving("--engine", engine.url, ...flags);
    const stream = await chat(clientUrl, { stream: true, max_tokens: 5_000 });
    child.kill("SIGTERM");
    await until("it drains", async () => (await fetch(`${adminUrl}/readyz`)).status === 503);
    child.kill("SIGTERM");
    assert.equal(await exit, 143);
    await assert.rejects(stream.text());
  });

  it("takes over a changed file, by itself and on SIGHUP, and keeps the old one if it is bad", async () => {
    const path = join(folder, "kvasir.yaml");
    const write = (more: string): Promise<void> =>
      writeFile(path, `engines: ["${engine.url}"]\nlisten: {host: 127.0.0.1, port: 0}\nadmin: {port: 0}\n${more}`);
    await write("");
    const { child, clientUrl, adminUrl, output, exit } = await serving("-c", path);
    const names = async (): Promise<string[]> =>
      ((await (await fetch(`${clientUrl}/v1/models`)).json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    assert.deepEqual(await names(), [MODEL]);
    await write(`models: {${MODEL}: {aliases: [first]}}\n`);
    await until("the alias is there", async () => (await names()).includes("first"));
    await write(`models: {${MODEL}: {aliases: [second], colour: red}}\n`);
    child.kill("SIGHUP");
    const refused = /kvasir\.yaml:\d+: models\.qwen3-32b\.colour: unknown key/;
    await until("the bad file is named", async () => {
      const { conditions } = (await (await fetch(`${adminUrl}/readyz`)).json()) as {
        conditions: { message: string }[];
      };
      return conditions.some(({ message }) => refused.test(message));
    });
    assert.ok((await names()).includes("first"));
    await until("the log says so", () => output.text.includes("new configuration refused, the old one stays"));
    child.kill("SIGTERM");
    assert.equal(await exit, 0);
  });

  it("says what is wrong, in one line and without a stack", async () => {
    const bad = join(folder, "bad.yaml");
    await writeFile(bad, "limits:\n  connectMs: 0\n");
    for (const [args, expected] of [
      [["serve"], /There is nothing to route to: give --engine <url>/],
      [["serve", "-c", bad], /bad\.yaml:2: limits\.connectMs: 0 is not allowed; allowed: 1\.\.600000/],
      [["serve", "-c", bad, "--engine", "http://a"], /--engine cannot be given beside it/],
      [["serve", "--engine", "not-a-url"], /engines\.0: "not-a-url" is not allowed; allowed: an http or https origin/],
      [
        ["serve", "--engine", "http://a", "--policy", "best"],
        /policy: "best" is not allowed; allowed: kvasir, round-robin/,
      ],
      [["serve", "--engine", "http://a", "--admin-host", "0.0.0.0"], /admin\.host: .*KVASIR_ADMIN_TOKEN/],
      [["serve", "--engine", "http://a", "--port", "0", "--admin-port", engine.url.split(":")[2]!], /--admin-port/],
      [["serve", "--engine", "http://a", "--port", "70000"], /allowed: 0\.\.65535/],
      [["config", "check", "-c", bad], /limits\.connectMs: 0 is not allowed/],
      [["config", "check", "-c", join(folder, "none.yaml")], /none\.yaml: ENOENT/],
      [["srve"], /unknown command 'srve'/],
    ] as const) {
      const { output, exit } = kvasir(...args);
      assert.equal(await exit, 1, output.text);
      assert.match(output.text, expected);
      assert.ok(!/\n\s+at /.test(output.text), output.text);
    }
  });

  it("takes the admin token from the environment where there is no file", async () => {
    process.env["KVASIR_ADMIN_TOKEN"] = "admin-token-1";
    const args = [
      "--engine",
      engine.url,
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      "--admin-host",
      "0.0.0.0",
      "--admin-port",
      "0",
    ];
    const { child, adminUrl, exit } = await serving(...args).finally(() => delete process.env["KVASIR_ADMIN_TOKEN"]);
    const status = `${adminUrl.replace("0.0.0.0", "127.0.0.1")}/status`;
    assert.equal((await fetch(status)).status, 401);
    assert.equal((await fetch(status, { headers: { authorization: "Bearer admin-token-1" } })).status, 200);
    child.kill("SIGTERM");
    assert.equal(await exit, 0);
  });

  it("makes keys that fit", async () => {
    const { output, exit } = kvasir("key", "create", "--name", "search");
    assert.equal(await exit, 0);
    const key = /^# (kv-\S+)$/m.exec(output.text)?.[1] ?? "";
    const path = join(folder, "keys.yaml");
    const yaml = output.text
      .split("\n")
      .filter((line) => !line.startsWith("#"))
      .join("\n");
    await writeFile(path, `engines: ["${engine.url}"]\nlisten: {host: 127.0.0.1, port: 0}\nadmin: {port: 0}\n${yaml}`);
    const served = await serving("-c", path);
    assert.equal((await chat(served.clientUrl, {})).status, 401);
    assert.equal((await chat(served.clientUrl, {}, { authorization: `Bearer ${key}` })).status, 200);
    served.child.kill("SIGTERM");
    await served.exit;
  });
});
