// Behaviours 18, 19 and 24: what the router believes to be cached.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chunk, LAST_CHUNK, post, STREAM_HEAD, type Received } from "../dispatchRig.ts";
import { MODEL, setUp, until, type Setup } from "../gatewaySetup.ts";
import { expectedHit } from "./books.ts";
import { chatBytes, Client } from "./client.ts";
import { answer, DONE, token, Worker } from "./worker.ts";

/** About 2,500 tokens, the same for the same name. */
function text(name: string): string {
  return `${name} and more of it. `.repeat(Math.ceil(10_000 / (name.length + 17)));
}

function messages(name: string): Record<string, unknown> {
  return { messages: [{ role: "user", content: text(name) }] };
}

/** Asks, waits for the whole answer, and says which share of the prompt was expected to be cached. */
async function hitOf(setup: Setup, bytes: string): Promise<number> {
  const client = new Client(setup.url, bytes);
  await client.sees((so) => so.includes("}}"));
  assert.equal(client.status, 200, client.text);
  client.leave();
  return expectedHit(setup);
}

describe("18. unique prefixes", () => {
  it("fill the index up to what the replicas can hold, and not beyond", async () => {
    await using one = await Worker.start(({ socket }) => void socket.write(answer()));
    await using other = await Worker.start(({ socket }) => void socket.write(answer()));
    const engines = [one, other].map(({ url }) => ({ url, kvCapacityTokens: 20_000 }));
    await using setup = await setUp([], { engines, policy: "round-robin", log: { requests: false } }, 2);
    const { index } = setup.router.fleet;
    const sizes: number[] = [];
    for (let at = 0; at < 500; at++) {
      await hitOf(setup, chatBytes(messages(`unique ${at}`)));
      if (at % 50 === 49) sizes.push(index.size);
    }
    // 20,000 tokens of two replicas are at most so many blocks of 512 bytes, and 500 prompts had 30 times as many.
    assert.ok(
      sizes.every((size) => size > 200 && size <= 2 * Math.ceil((20_000 * 4) / 512)),
      sizes.join(" "),
    );
    const [, second = 0] = sizes;
    for (const size of sizes.slice(1)) assert.ok(Math.abs(size - second) <= 40, `no growth: ${sizes.join(" ")}`);
  });
});

describe("19. a replica's hits", () => {
  it("are 0 at once after a restart at the same address, and late news of the old process changes nothing", async () => {
    const held: Received[] = [];
    await using worker = await Worker.start((request) => {
      const streamed = request.body.includes(`"stream":true`);
      if (streamed) held.push(request);
      request.socket.write(streamed ? `${STREAM_HEAD}${chunk(token()).toString()}` : answer());
    });
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    const [replica] = setup.router.fleet.replicas();
    const { index } = setup.router.fleet;
    for (let life = 1; life <= 3; life++) {
      const prompt = messages(`life of ${life % 2}`);
      assert.equal(await hitOf(setup, chatBytes(prompt)), 0);
      assert.ok((await hitOf(setup, chatBytes(prompt))) > 0.9);
      const late = Array.from({ length: 4 }, () => new Client(setup.url, chatBytes({ ...prompt, stream: true })));
      await until("they stream", () => late.every(({ text: so }) => so.includes("word")));
      const { incarnation } = replica!;
      worker.probed.startedAtSeconds += 10;
      await until("the restart was seen", () => replica!.incarnation !== incarnation);
      assert.equal(index.heldBy(replica!.index), 0);
      await until("it takes requests again", () => replica!.lifecycle.state === "ready");

      const usage = `data: {"choices":[],"usage":{"prompt_tokens":2500,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2500}}}\n\n`;
      for (const { socket } of held.splice(0)) {
        for (const bytes of [chunk(token()), chunk(usage), chunk(DONE), Buffer.from(LAST_CHUNK)]) socket.write(bytes);
      }
      await until("the old answers have ended", () => late.every(({ text: so }) => so.includes("[DONE]")));
      for (const client of late) client.leave();
      assert.equal(index.heldBy(replica!.index), 0);
    }
    assert.equal(await hitOf(setup, chatBytes(messages("life of 1"))), 0);
  });

  it("sink to nothing where answers show that it caches none", async () => {
    let cached = 2500;
    await using worker = await Worker.start(({ socket }) => {
      socket.write(answer({ prompt: 2500, cached, output: 1 }));
    });
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    for (let at = 0; at < 4; at++) await hitOf(setup, chatBytes(messages("system prompt")));
    assert.ok((await hitOf(setup, chatBytes(messages("system prompt")))) > 0.9);
    cached = 0;
    const hits: number[] = [];
    for (let at = 0; at < 40; at++) hits.push(await hitOf(setup, chatBytes(messages("system prompt"))));
    assert.ok(Math.max(...hits.slice(-10)) < 0.4, hits.join(" "));
  });

  it("are 0 when another engine takes the place of a removed one", async () => {
    await using worker = await Worker.start(({ socket }) => void socket.write(answer()));
    await using setup = await setUp([], {}, 0);
    const admin = `${setup.adminUrl}/replicas`;
    for (let life = 1; life <= 3; life++) {
      const body = JSON.stringify({ url: worker.url });
      await fetch(admin, { method: "POST", headers: { "content-type": "application/json" }, body });
      await until("it is ready", () => setup.router.fleet.byId(worker.id)?.lifecycle.state === "ready");
      assert.equal(await hitOf(setup, chatBytes(messages("the same"))), 0);
      assert.ok((await hitOf(setup, chatBytes(messages("the same")))) > 0.9);
      await fetch(`${admin}/${encodeURIComponent(worker.id)}`, { method: "DELETE" });
      assert.equal(setup.router.fleet.index.size, 0);
    }
  });
});

describe("24. the same text", () => {
  const image = (pixel: string, by: "data" | "address"): unknown[] => [
    {
      type: "image_url",
      image_url: { url: by === "data" ? `data:image/png;base64,${pixel}` : `https://x/${pixel}.png` },
    },
    { type: "text", text: text("shared") },
  ];
  const said = (content: unknown): Record<string, unknown> => ({ messages: [{ role: "user", content }] });
  const variants: Record<string, Record<string, unknown>> = {
    plain: said(text("shared")),
    "adapter a": { model: "adapter-a", ...said(text("shared")) },
    "adapter b": { model: "adapter-b", ...said(text("shared")) },
    "salt x": { cache_salt: "x", ...said(text("shared")) },
    "salt y": { cache_salt: "y", ...said(text("shared")) },
    "adapter a, salt x": { model: "adapter-a", cache_salt: "x", ...said(text("shared")) },
    "an image": said(image("AAAA", "data")),
    "another image": said(image("AAAB", "data")),
    "an image elsewhere": said(image("1", "address")),
    "another image elsewhere": said(image("2", "address")),
    "a recording": said([
      { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
      { type: "text", text: text("shared") },
    ]),
    "another recording": said([
      { type: "input_audio", input_audio: { data: "AAAB", format: "wav" } },
      { type: "text", text: text("shared") },
    ]),
    "other tools": { tools: [{ type: "function", function: { name: "f", parameters: {} } }], ...said(text("shared")) },
  };

  it("under two adapters, salts, images or recordings is no hit, and under the same ones is", async () => {
    await using worker = await Worker.start(({ socket }) => void socket.write(answer()));
    worker.probed.adapters = ["adapter-a", "adapter-b"];
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    for (const [name, fields] of Object.entries(variants)) {
      assert.equal(await hitOf(setup, chatBytes(fields)), 0, `${name}, for the first time`);
      assert.ok((await hitOf(setup, chatBytes(fields))) > 0.9, `${name}, for the second time`);
    }
    for (const [name, fields] of Object.entries(variants))
      assert.ok((await hitOf(setup, chatBytes(fields))) > 0.9, `${name}, in the end`);
  });

  it("is told apart on the other paths as well", async () => {
    await using worker = await Worker.start(({ socket }) => void socket.write(answer()));
    worker.probed.adapters = ["adapter-a", "adapter-b"];
    await using setup = await setUp([], { engines: [worker.url] }, 1);
    const prompts: Record<string, Record<string, unknown>> = {
      "/v1/completions": { prompt: text("on a path") },
      "/v1/responses": { input: text("on a path") },
      "/v1/messages": { max_tokens: 9, messages: [{ role: "user", content: text("on a path") }] },
    };
    for (const [path, prompt] of Object.entries(prompts)) {
      for (const other of [
        {},
        { model: "adapter-a" },
        { model: "adapter-b" },
        { cache_salt: "s" },
        { cache_salt: "t" },
      ]) {
        const bytes = post(JSON.stringify({ model: MODEL, ...prompt, ...other }), "", path);
        const first = await hitOf(setup, bytes);
        // The paths may share blocks with each other, but only under the same adapter and salt.
        if (path === "/v1/completions") assert.equal(first, 0, `${path} ${JSON.stringify(other)}`);
        assert.ok((await hitOf(setup, bytes)) > 0.9, `${path} ${JSON.stringify(other)}`);
      }
    }
  });
});
