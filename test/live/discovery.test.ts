import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ManualClock } from "#src/determinism/clock.ts";
import { ManualTimers, processTimers } from "#src/determinism/timers.ts";
import { AdminSource } from "#src/discovery/adminSource.ts";
import { systemResolver } from "#src/discovery/dnsResolver.ts";
import { DnsSource } from "#src/discovery/dnsSource.ts";
import { FileSource } from "#src/discovery/fileSource.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { Source } from "#src/discovery/source.ts";
import { StaticSource } from "#src/discovery/staticSource.ts";
import { listening, type Listening } from "../unit/discovery/listening.ts";
import { tinyNameServer, type Zone } from "./tinyNameServer.ts";

const A = "http://10.0.0.1:8000";
const B = "http://10.0.0.2:8000";
const SIX = "http://[fd00::1]:8000";

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    if (condition()) return;
    await sleep(10);
  }
  assert.fail(`never: ${what}`);
}

const hears = (heard: Listening, ...urls: string[]) =>
  until(() => heard.urls().join() === urls.join(), `set is ${urls.join()}, but is ${heard.urls().join()}`);

interface Subject {
  readonly source: Source;
  /** Makes the source see exactly these. */
  readonly show: (urls: readonly string[]) => Promise<void>;
  /** Makes it unable to tell; absent where that cannot happen. */
  readonly fail?: () => Promise<void>;
}

type MakeSubject = (urls: readonly string[], t: TestContext) => Promise<Subject>;

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kvasir-discovery-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** Slow regular looks: what a test sees in time came by a notice. */
const fileSource = (path: string, everyMs = 600_000) =>
  new FileSource({ path, timers: processTimers, everyMs, settleMs: 10 });

const fileSubject: MakeSubject = async (urls, t) => {
  const path = join(await temporaryFolder(t), "engines.yaml");
  const show = (shown: readonly string[]) => writeFile(path, JSON.stringify(shown));
  await show(urls);
  return { source: fileSource(path), show, fail: () => writeFile(path, "- url: [half a li") };
};

const addressSubject: MakeSubject = async (urls, t) => {
  const zone: Zone = {};
  const server = await tinyNameServer(zone);
  t.after(server.close);
  const show = (shown: readonly string[]) => {
    const hosts = shown.map((url) => new URL(url).hostname.replace(/[[\]]/g, ""));
    const isSix = (host: string) => host.includes(":");
    Object.assign(zone, { A: hosts.filter((host) => !isSix(host)), AAAA: hosts.filter(isSix), broken: false });
    return Promise.resolve();
  };
  await show(urls);
  const source = new DnsSource({
    host: "engines.test",
    record: "address",
    timers: processTimers,
    resolver: systemResolver([server.address]),
    minEveryMs: 10,
    everyMs: 20,
  });
  const fail = () => Promise.resolve(void (zone.broken = true));
  return { source, show, fail };
};

const SUBJECTS: Record<string, MakeSubject> = {
  static: (urls) => {
    const source = new StaticSource(
      "configuration",
      urls.map((url) => parseEndpoint(url)),
    );
    return Promise.resolve({
      source,
      show: (shown) => Promise.resolve(source.set(shown.map((url) => parseEndpoint(url)))),
    });
  },
  admin: (urls) => {
    const source = new AdminSource();
    const show = (shown: readonly string[]) => {
      for (const { url } of source.list()) if (!shown.includes(url)) source.remove(url);
      for (const url of shown) source.add(url);
      return Promise.resolve();
    };
    return show(urls).then(() => ({ source, show }));
  },
  file: fileSubject,
  dns: addressSubject,
};

for (const [kind, make] of Object.entries(SUBJECTS)) {
  describe(`discovery source: ${kind}`, () => {
    it("has delivered its set when it has started, IPv6 included", async (t) => {
      const { source } = await make([A, SIX], t);
      const heard = listening();
      await source.start(heard);
      assert.deepEqual(heard.urls(), [A, SIX]);
      assert.deepEqual(heard.failures, []);
      assert.equal(heard.sets[0]?.[1]?.name, "[fd00::1]:8000");
      await source.stop();
    });

    it("tells each whole new set", async (t) => {
      const { source, show } = await make([A], t);
      const heard = listening();
      await source.start(heard);
      await show([A, B]);
      await hears(heard, A, B);
      await show([B]);
      await hears(heard, B);
      await source.stop();
    });

    it("is silent once stopped", async (t) => {
      const { source, show } = await make([A], t);
      const heard = listening();
      await source.start(heard);
      await source.stop();
      const sets = heard.sets.length;
      await show([B]);
      await sleep(50);
      assert.equal(heard.sets.length, sets);
      assert.deepEqual(heard.failures, []);
    });

    it("keeps the last set while it cannot tell, says why, and recovers", async (t) => {
      const { source, show, fail } = await make([A], t);
      if (fail === undefined) return;
      const heard = listening();
      await source.start(heard);
      await fail();
      await until(() => heard.failures.length > 0, "reported");
      assert.deepEqual(heard.urls(), [A]);
      await show([A, B]);
      await hears(heard, A, B);
      await source.stop();
    });
  });
}

describe("a watched file", () => {
  it("holds YAML with all that an endpoint can say", async (t) => {
    const path = join(await temporaryFolder(t), "engines.yaml");
    await writeFile(path, `- ${A}\n- url: ${B}\n  role: prefill\n  labels: { rack: r1 } # near\n`);
    const heard = listening();
    const source = fileSource(path);
    await source.start(heard);
    assert.deepEqual(
      heard.sets[0]?.map(({ role, labels }) => [role, labels]),
      [
        ["mixed", {}],
        ["prefill", { rack: "r1" }],
      ],
    );
    await source.stop();
  });

  it("may be replaced as editors do, and removed in between", async (t) => {
    const folder = await temporaryFolder(t);
    const path = join(folder, "engines.yaml");
    await writeFile(path, `- ${A}\n`);
    const heard = listening();
    const source = fileSource(path);
    await source.start(heard);
    for (const url of [B, A, B]) {
      await writeFile(join(folder, ".engines.swp"), `- ${url}\n`);
      await rename(join(folder, ".engines.swp"), path);
      await hears(heard, url);
    }
    await rm(path);
    await until(() => heard.failures.length > 0, "its absence reported");
    assert.deepEqual(heard.urls(), [B]);
    await writeFile(path, `- ${A}\n`);
    await hears(heard, A);
    await source.stop();
  });

  it("may be a link into a folder that is exchanged, as Kubernetes does", async (t) => {
    const folder = await temporaryFolder(t);
    const version = async (name: string, url: string) => {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "engines.yaml"), `- ${url}\n`);
      await symlink(name, join(folder, "..data_tmp"));
      await rename(join(folder, "..data_tmp"), join(folder, "..data"));
    };
    await version("..v1", A);
    await symlink("..data/engines.yaml", join(folder, "engines.yaml"));
    const heard = listening();
    const source = fileSource(join(folder, "engines.yaml"));
    await source.start(heard);
    assert.deepEqual(heard.urls(), [A]);
    await version("..v2", B);
    await hears(heard, B);
    await source.stop();
  });

  it("may appear after the start, its folder too", async (t) => {
    const folder = join(await temporaryFolder(t), "later");
    const path = join(folder, "engines.yaml");
    const heard = listening();
    const source = fileSource(path, 20);
    await source.start(heard);
    assert.match(heard.failures[0]?.message ?? "", /ENOENT/);
    await mkdir(folder);
    await writeFile(path, `- ${A}\n`);
    await hears(heard, A);
    await source.stop();
  });

  it("is not believed while it is being written", async (t) => {
    const path = join(await temporaryFolder(t), "engines.yaml");
    await writeFile(path, `- ${A}\n- ${B}\n`);
    const heard = listening();
    const timers = new ManualTimers(new ManualClock());
    const source = new FileSource({ path, timers, everyMs: 100, settleMs: 100 });
    const look = async () => {
      await timers.advance(100);
      await until(() => timers.pending === 1, "looked, and waits for the next look");
    };
    await source.start(heard);
    // Valid, and shorter: what a reader sees between two writes of an editor that does not replace.
    await writeFile(path, `- ${A}\n`);
    await look();
    await writeFile(path, `- ${A}\n- ${B}\n- ${SIX}\n`);
    await look();
    assert.equal(heard.sets.length, 1);
    await look();
    assert.deepEqual(heard.urls(), [A, B, SIX]);
    assert.equal(heard.sets.length, 2);
    await source.stop();
  });

  it("is refused when it is empty, no list, too large or built of aliases; an empty list is a set", async (t) => {
    const path = join(await temporaryFolder(t), "engines.yaml");
    await writeFile(path, `- ${A}\n`);
    const heard = listening();
    const source = fileSource(path);
    await source.start(heard);
    const bad: [string, RegExp][] = [
      ["", /not a list/],
      ["url: x\n", /not a list/],
      [`# ${"x".repeat(5 * 1024 * 1024)}`, /at most 4194304/],
      [`- &a ${A}\n- *a\n`, /alias/i],
    ];
    for (const [text, message] of bad) {
      const before = heard.failures.length;
      await writeFile(path, text);
      await until(() => heard.failures.slice(before).some((error) => message.test(error.message)), String(message));
      assert.deepEqual(heard.urls(), [A]);
    }
    await writeFile(path, "[]\n");
    await until(() => heard.sets.at(-1)?.length === 0, "empty set");
    await source.stop();
  });
});

describe("SRV records of a real name server", () => {
  it("give names with ports", async (t) => {
    const server = await tinyNameServer({ SRV: [{ target: "a.engines.test", port: 8001 }] });
    t.after(server.close);
    const heard = listening();
    const source = new DnsSource({
      host: "_http._tcp.engines.test",
      record: "srv",
      timers: processTimers,
      resolver: systemResolver([server.address]),
    });
    await source.start(heard);
    assert.deepEqual(heard.urls(), ["http://a.engines.test:8001"]);
    await source.stop();
  });
});
