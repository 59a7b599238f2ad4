import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { POLICY_NAMES } from "#src/config/names.ts";
import { startEmulatedEngine, type EmulatedEngine } from "#src/emulator/emulatedEngine.ts";

// The README's own blocks are run, with the addresses of this test's engines and ports in place of the examples'.

const ROOT = join(import.meta.dirname, "../..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const OPERATIONS = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
const MAIN = join(ROOT, "src/cli/main.ts");
const folder = mkdtempSync(join(tmpdir(), "kvasir-readme-"));
const children: ChildProcess[] = [];
let engines: EmulatedEngine[] = [];

before(async () => {
  engines = await Promise.all([0, 1].map(() => startEmulatedEngine({ model: "Qwen/Qwen3-32B", timeScale: 0.02 })));
});

after(async () => {
  children.forEach((child) => child.kill("SIGKILL"));
  await Promise.all(engines.map((engine) => engine.stop()));
  rmSync(folder, { recursive: true });
});

function blocks(language: string, page = README): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, "gm"))].map(([, text = ""]) => text);
}

/** The block of the README, or of `page`, that holds `needle`; examples moved away must not silently stop being tested. */
function blockWith(language: string, needle: string, page = README): string {
  const found = blocks(language, page).find((block) => block.includes(needle));
  assert.ok(found, `no ${language} block with ${needle}`);
  return found;
}

function forThisTest(text: string): string {
  return engines.reduce((changed, { url }, at) => changed.replaceAll(`http://10.0.0.${at + 1}:8000`, url), text);
}

function run(command: string): ChildProcess {
  const [, ...args] = command.trim().split(/\s+/).slice(1);
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  return child;
}

async function outputOf(child: ChildProcess): Promise<string> {
  const [out, error] = await Promise.all([child.stdout?.toArray(), child.stderr?.toArray()]);
  if (child.exitCode === null) await once(child, "exit");
  assert.equal(child.exitCode, 0, `${error?.join("")}`);
  return out?.join("") ?? "";
}

/** Starts `kvasir serve …` on free ports and resolves with both addresses once an engine is known. */
async function serve(
  command: string,
): Promise<{ child: ChildProcess; url: string; adminUrl: string; said: () => string }> {
  const child = run(command);
  let text = "";
  for await (const bytes of child.stderr ?? []) {
    text += String(bytes);
    const match = /listens on (\S+), admin on (\S+)/.exec(text);
    if (match === null) continue;
    child.stderr?.on("data", () => undefined);
    child.stdout?.on("data", () => undefined);
    const [, url = "", adminUrl = ""] = match;
    while ((await fetch(`${adminUrl}/readyz`)).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    return { child, url: url.replace("0.0.0.0", "127.0.0.1"), adminUrl, said: () => text };
  }
  return assert.fail(`serve ended: ${text}`);
}

async function shell(script: string): Promise<string> {
  const child = spawn("sh", ["-ec", script.replaceAll("curl ", "curl -sS ")], { stdio: ["ignore", "pipe", "pipe"] });
  return outputOf(child);
}

test("serve needs no file, and the curl lines work", async () => {
  const command = forThisTest(blockWith("sh", "kvasir serve --engine"));
  const { child, url, adminUrl, said } = await serve(`${command.trim()} --port 0 --admin-port 0`);
  const here = (text: string): string =>
    text
      .replaceAll("http://127.0.0.1:8080", url)
      .replaceAll("http://127.0.0.1:9091", adminUrl)
      .replace("MODEL", "Qwen/Qwen3-32B");
  const answers = await shell(here(blockWith("sh", "curl http://127.0.0.1:8080/v1/models")));
  assert.match(answers, /"id":"Qwen\/Qwen3-32B"/);
  assert.match(answers, /x-kvasir-explain: .*winner=.*prefill=/i);
  assert.match(answers, /"ready":true/);
  assert.match(said(), /no client keys: everybody/, "it listens on all interfaces");
  const explained = await shell(here(blockWith("sh", "/decisions")));
  assert.match(explained, /"runnerUp":/);
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  assert.equal(code, 0);
});

test("the configuration file is good, its commands run, and its alias answers with the key", async () => {
  const yaml = forThisTest(blockWith("yaml", "# kvasir.yaml"));
  const [create = "", check = "", start = ""] = blockWith("sh", "kvasir key create").trim().split("\n");
  const created = await outputOf(run(create));
  const hash = /sha256:[0-9a-f]{64}/.exec(created)?.[0] ?? assert.fail(created);
  const key = /\bkv-\S+/.exec(created)?.[0] ?? assert.fail(created);
  const ports = "listen: { host: 127.0.0.1, port: 0 }\nadmin: { port: 0 }\n";
  writeFileSync(join(folder, "kvasir.yaml"), ports + yaml.replace(/sha256:[0-9a-f]{64}/, hash));
  await outputOf(run(check));
  const { child, url } = await serve(start);
  const ask = (headers: Record<string, string>): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "chat", messages: [{ role: "user", content: "Hello" }], max_tokens: 4 }),
    });
  assert.equal((await ask({})).status, 401);
  const answer = await ask({ authorization: `Bearer ${key}` });
  assert.equal(answer.status, 200, await answer.text());
  child.kill("SIGTERM");
  await once(child, "exit");
});

test("the curl lines for engines add, drain, resume and remove one", async () => {
  const third = await startEmulatedEngine({ model: "Qwen/Qwen3-32B", timeScale: 0.02 });
  const { child, adminUrl } = await serve(`npx kvasir serve --engine ${engines[0]!.url} --port 0 --admin-port 0`);
  try {
    const here = (text: string): string =>
      [third.url, engines[0]!.url].reduce(
        (changed, url, at) => changed.replaceAll(`10.0.0.${at === 0 ? 3 : 1}:8000`, new URL(url).host),
        text.replaceAll("http://127.0.0.1:9091", adminUrl),
      );
    const changed = await shell(here(blockWith("sh", "-X DELETE", OPERATIONS)));
    assert.match(changed, /"url":"http:\/\/127\.0\.0\.1:\d+"[^]*"removed":/);
    const drained = await shell(here(blockWith("sh", "/drain", OPERATIONS)));
    assert.match(drained, /"state":"draining"[^]*"reservedRequests":0[^]*"state":"probing"/);
  } finally {
    child.kill("SIGTERM");
    await once(child, "exit");
    await third.stop();
  }
});

test("every page that is linked exists", () => {
  const docs = readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`);
  for (const page of ["README.md", "AGENTS.md", "deploy/README.md", ...docs]) {
    const text = readFileSync(join(ROOT, page), "utf8");
    for (const [, target = ""] of text.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      assert.ok(existsSync(join(ROOT, dirname(page), target)), `${page} links to ${target}`);
    }
  }
});

test("every policy is named, and no other", () => {
  const table = README.slice(README.indexOf("| policy "), README.indexOf("`npx kvasir policies`"));
  const named = [...table.matchAll(/^\| (`[^|]+)\|/gm)].flatMap(([, cell = ""]) => cell.match(/[\w-]+/g) ?? []);
  assert.deepEqual(named, [...POLICY_NAMES]);
});
