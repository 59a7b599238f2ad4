import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AdminSource } from "#src/discovery/adminSource.ts";
import { Discovery } from "#src/discovery/discovery.ts";
import { parseEndpoint } from "#src/discovery/parseEndpoint.ts";
import type { EngineEndpoint } from "#src/discovery/replicaSpec.ts";
import type { Source, SourceListener } from "#src/discovery/source.ts";
import { StaticSource } from "#src/discovery/staticSource.ts";

function setUp(sources: readonly Source[], maxEndpoints?: number) {
  const sets: (readonly EngineEndpoint[])[] = [];
  const problems: ReadonlyMap<string, string>[] = [];
  const discovery = new Discovery({
    sources,
    listener: { changed: (set) => void sets.push(set), problems: (now) => void problems.push(now) },
    ...(maxEndpoints === undefined ? {} : { maxEndpoints }),
  });
  return { discovery, sets, problems };
}

const list = (...urls: string[]) => urls.map((url) => parseEndpoint(url));
const urls = (set: readonly EngineEndpoint[] | undefined) => set?.map((endpoint) => endpoint.url);

describe("joined discovery", () => {
  it("counts an address once, under the name that the first source gives it", async () => {
    const named = parseEndpoint({ url: "http://h:1", name: "alpha", labels: { rack: "r1" } });
    const { discovery } = setUp([
      new StaticSource("first", [named]),
      new StaticSource("second", list("http://h:1/", "http://h:2")),
    ]);
    await discovery.start();
    assert.deepEqual(urls(discovery.endpoints), ["http://h:1", "http://h:2"]);
    assert.equal(discovery.endpoints[0], named);
    await discovery.stop();
  });

  it("keeps an address until the last source that names it lets go", async () => {
    const first = new StaticSource("first", list("http://h:1"));
    const second = new StaticSource("second", list("http://h:1"));
    const { discovery, sets } = setUp([first, second]);
    await discovery.start();
    first.set([]);
    assert.deepEqual(urls(discovery.endpoints), ["http://h:1"]);
    assert.equal(sets.length, 1, "nothing changed for anybody");
    second.set([]);
    assert.deepEqual(urls(sets.at(-1)), []);
    await discovery.stop();
  });

  it("leaves out and reports a name that is taken", async () => {
    const clash = new StaticSource("second", [parseEndpoint({ url: "http://h:2", name: "alpha" })]);
    const { discovery, problems } = setUp([
      new StaticSource("first", [parseEndpoint({ url: "http://h:1", name: "alpha" })]),
      clash,
    ]);
    await discovery.start();
    assert.deepEqual(urls(discovery.endpoints), ["http://h:1"]);
    assert.match(problems.at(-1)?.get("second") ?? "", /http:\/\/h:2 is called alpha, which is http:\/\/h:1 already/);
    clash.set([parseEndpoint({ url: "http://h:2", name: "beta" })]);
    assert.deepEqual(urls(discovery.endpoints), ["http://h:1", "http://h:2"]);
    assert.equal(problems.at(-1)?.size, 0);
    await discovery.stop();
  });

  it("is bounded over all sources together, and says what it leaves out", async () => {
    const many = (from: number) => list(...Array.from({ length: 60 }, (_, i) => `http://h:${from + i}`));
    const { discovery, problems } = setUp([new StaticSource("a", many(1000)), new StaticSource("b", many(2000))], 100);
    await discovery.start();
    assert.equal(discovery.endpoints.length, 100);
    assert.match(problems.at(-1)?.get("b") ?? "", /bound of 100 engines, and 19 more/);
    await discovery.stop();
  });

  it("keeps the set of a source that fails, and tells when all is well again", async () => {
    const source = new (class implements Source {
      readonly name = "flaky";
      listener: SourceListener | null = null;
      start(listener: SourceListener): Promise<void> {
        this.listener = listener;
        listener.endpoints(this.name, list("http://h:1"));
        return Promise.resolve();
      }
      stop(): Promise<void> {
        return Promise.resolve();
      }
    })();
    const { discovery, sets, problems } = setUp([source]);
    await discovery.start();
    for (let times = 0; times < 3; times++) source.listener?.failed("flaky", new Error("gone"));
    assert.deepEqual(urls(discovery.endpoints), ["http://h:1"]);
    assert.deepEqual(problems, [new Map([["flaky", "gone"]])], "told once");
    source.listener?.endpoints("flaky", list("http://h:1"));
    assert.equal(problems.at(-1)?.size, 0);
    assert.equal(sets.length, 1);
    await discovery.stop();
    source.listener?.endpoints("flaky", []);
    assert.equal(sets.length, 1, "silent once stopped");
  });

  it("refuses two sources of one name", () => {
    assert.throws(() => setUp([new StaticSource("x", []), new StaticSource("x", [])]), /one name/);
  });
});

describe("the admin API's source", () => {
  it("adds, replaces by name, removes by name or URL", () => {
    const admin = new AdminSource();
    admin.add("http://h:1");
    admin.add({ url: "http://h:2", name: "beta" });
    admin.add({ url: "http://h:3", name: "beta" });
    assert.deepEqual(urls(admin.list()), ["http://h:1", "http://h:3"]);
    assert.equal(admin.remove("beta"), true);
    assert.equal(admin.remove("beta"), false);
    assert.equal(admin.remove("http://h:1"), true);
    assert.deepEqual(admin.list(), []);
  });

  it("refuses the same address under another name, and more than it may hold", () => {
    const admin = new AdminSource({ maxEndpoints: 50 });
    for (let i = 0; i < 50; i++) admin.add(`http://h:${1000 + i}`);
    assert.throws(() => admin.add("http://h:1"), /at most 50/);
    assert.throws(() => admin.add({ url: "http://h:1000", name: "twin" }), /is there already, as h:1000/);
    const used = [parseEndpoint({ url: "http://listed:1", name: "listed" })];
    assert.throws(() => admin.add({ url: "http://listed:1", name: "other" }, used), /is there already, as listed/);
    assert.throws(() => admin.add({ url: "http://h:1000", name: "listed" }, used), /is there already/);
    assert.throws(
      () => admin.add({ url: "http://h:9", name: "listed" }, used),
      /listed is there already, at http:\/\/listed:1/,
    );
    admin.add({ url: "http://h:1000", role: "decode" }, [...used, ...admin.list()]);
    assert.equal(admin.list().length, 50);
  });
});
