// Prefill and decode on different engines, with everything that can go wrong between the two.
import assert from "node:assert/strict";
import { test } from "node:test";
import { json, STREAM_HEAD } from "../dispatchRig.ts";
import { MODEL, until } from "../gatewaySetup.ts";
import { leftOver } from "./books.ts";
import { chatBytes, Client } from "./client.ts";
import { startNixl, type Nixl, type Step } from "./nixlPeers.ts";
import { asked } from "./worker.ts";

const PROMPT = "Tell me all about it. ".repeat(800);

let prompts = 0;

/** A long prompt that no other begins like. */
function longChat(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    model: MODEL,
    messages: [{ role: "user", content: `${prompts++} ${PROMPT}` }],
    max_tokens: 8,
    ...more,
  };
}

function ask({ setup }: Nixl, body: Record<string, unknown>, path = "/v1/chat/completions"): Promise<Response> {
  return fetch(`${setup.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function nothingLeft({ setup }: Nixl): Promise<void> {
  await until("every count is zero", async () => Object.keys(await leftOver(setup)).length === 0);
}

const hangs: Step = () => undefined;
const refuses: Step = ({ socket }) => socket.write(json({}, "503 Service Unavailable", "Retry-After: 0\r\n"));
const dies: Step = ({ socket }) => socket.destroy();
const fails: Step = ({ socket }) => socket.write(json({ error: { message: "lost" } }, "500 Internal Server Error"));

test("37 a split answer is the client's as it is, and the prefill answer's parameters go on byte for byte", async () => {
  await using peers = await startNixl();
  const response = await ask(peers, longChat());
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("x-kvasir-replica"), peers.decode.id);
  assert.equal(peers.fetched, 1);
  const streamed = await (await ask(peers, longChat({ stream: true }))).text();
  assert.match(streamed, /data: \[DONE\]/);
  assert.equal(peers.fetched, 2);
  assert.deepEqual(peers.broken, []);
  await nothingLeft(peers);
});

test("36 every limit is the prefill leg's own, none the decode leg's", async () => {
  await using peers = await startNixl();
  const limits = {
    max_tokens: 77,
    min_tokens: 5,
    stream: true,
    stream_options: { include_usage: true },
    logprobs: true,
    top_logprobs: 2,
    stop: ["x"],
    temperature: 0.5,
  };
  assert.equal((await ask(peers, longChat(limits))).status, 200);
  const { max_completion_tokens: most, ...prefill } = asked(peers.prefill.requests[0]!);
  assert.equal(most, 1);
  const sent = asked(peers.decode.requests[0]!);
  for (const [name, value] of Object.entries(limits)) assert.deepEqual(sent[name], value, name);
  for (const name of ["min_tokens", "stream_options", "logprobs", "top_logprobs"])
    assert.equal(prefill[name], undefined);
  assert.deepEqual([prefill["stop"], prefill["temperature"], prefill["stream"]], [["x"], 0.5, false]);
  assert.deepEqual(peers.broken, []);
});

test("36 chats, completions and responses are split; what cannot be is not", async () => {
  await using peers = await startNixl();
  const text = (at: number) => `${at} ${PROMPT}`;
  await ask(peers, { model: MODEL, prompt: text(-1), max_tokens: 8 }, "/v1/completions");
  await ask(peers, { model: MODEL, input: text(-2), max_output_tokens: 8, store: true }, "/v1/responses");
  await ask(peers, longChat({ tools: [{ type: "function", function: { name: "f" } }] }));
  assert.deepEqual([peers.fetched, peers.alone], [3, 0]);
  const whole = [{ n: 2 }, { prompt_logprobs: 1 }, { tool_choice: "required", tools: [] }];
  for (const more of whole) await ask(peers, longChat(more));
  assert.deepEqual([peers.fetched, peers.alone], [3, whole.length]);
  assert.deepEqual(peers.broken, []);
});

test("37 what a client says of a hand-off reaches no engine", async () => {
  await using peers = await startNixl();
  const said = {
    kv_transfer_params: { do_remote_prefill: true, remote_engine_id: "mine", remote_block_ids: [[7]] },
    bootstrap_room: 7,
    bootstrap_host: "evil",
    disaggregated_params: { request_type: "generation_only" },
    data_parallel_rank: 3,
  };
  await ask(peers, longChat(said));
  await ask(peers, longChat({ ...said, n: 2 }));
  const bodies = [...peers.prefill.requests, ...peers.decode.requests].map(({ body }) => body.toString());
  assert.equal(bodies.length, 3);
  for (const body of bodies) assert.doesNotMatch(body, /mine|evil|bootstrap|disaggregated|data_parallel_rank/);
  assert.deepEqual(peers.broken, []);
});

const FAULTS: readonly (readonly [string, Partial<Record<"prefill" | "decode", Step>>])[] = [
  ["the prefill engine refuses", { prefill: refuses }],
  ["the prefill engine dies", { prefill: dies }],
  ["the prefill engine fails", { prefill: fails }],
  ["the decode engine refuses", { decode: refuses }],
  ["the decode engine cannot fetch", { decode: fails }],
  [
    "the decode engine says in its stream that it cannot fetch",
    {
      decode: ({ socket }) => {
        const event = `data: {"error": {"message": "lost", "code": 500}}\n\n`;
        socket.write(`${STREAM_HEAD}${event.length.toString(16)}\r\n${event}\r\n0\r\n\r\n`);
      },
    },
  ],
];

for (const [name, steps] of FAULTS)
  test(`34 ${name}: the request is done again as a whole, and nothing stays behind`, async () => {
    await using peers = await startNixl({ leaseMs: 400 });
    for (const [side, step] of Object.entries(steps)) peers.next[side as "prefill" | "decode"].push(step);
    const response = await ask(peers, longChat({ stream: true }));
    assert.equal(response.status, 200);
    assert.match(await response.text(), /data: \[DONE\]/);
    assert.deepEqual(peers.broken, []);
    await nothingLeft(peers);
  });

test("34 the decode engine dies: the client hears whose fault it was, and nothing stays behind", async () => {
  await using peers = await startNixl({ leaseMs: 400, config: { limits: { retries: 0 } } });
  peers.next.decode.push(dies);
  const response = await ask(peers, longChat());
  assert.equal(response.status, 502);
  assert.equal(((await response.json()) as { error: { code: string } }).error.code, "engine_failed");
  await nothingLeft(peers);
});

test("34 a prefill engine's word on the request itself is the client's", async () => {
  await using peers = await startNixl();
  peers.next.prefill.push(({ socket }) => socket.write(json({ error: { message: "too long" } }, "400 Bad Request")));
  const response = await ask(peers, longChat());
  assert.deepEqual([response.status, await response.json()], [400, { error: { message: "too long" } }]);
  assert.equal(response.headers.get("x-request-id")?.length, 36);
  assert.equal(peers.decode.requests.length, 0);
  await nothingLeft(peers);
});

test("34 a prefill answer without parameters leaves the whole to the decode engine", async () => {
  await using peers = await startNixl();
  peers.next.prefill.push(({ socket }) => socket.write(json({ choices: [], kv_transfer_params: null })));
  assert.equal((await ask(peers, longChat())).status, 200);
  assert.deepEqual([peers.fetched, peers.alone], [0, 1]);
});

for (const side of ["prefill", "decode"] as const)
  test(`35 a client that leaves while the ${side} engine is asked ends both legs`, async () => {
    await using peers = await startNixl({ leaseMs: 400 });
    peers.next[side].push(hangs);
    const client = new Client(peers.setup.url, chatBytes(longChat({ stream: true })));
    await until("the leg is there", () => peers[side].requests.length === 1);
    const [{ socket } = { socket: null }] = peers[side].requests;
    client.leave();
    await until("the engine is told to stop", () => socket?.destroyed === true);
    if (side === "prefill") assert.equal(peers.decode.requests.length, 0);
    else assert.equal(peers.setup.router.fleet.ledger.size, 1, "KV that waits for nobody is held until its lease ends");
    await nothingLeft(peers);
  });

test("35 a client that leaves in the middle of the answer leaves nothing behind", async () => {
  await using peers = await startNixl();
  peers.next.decode.push(({ socket }) => socket.write(`${STREAM_HEAD}a\r\ndata: {}\n\n\r\n`));
  const client = new Client(peers.setup.url, chatBytes(longChat({ stream: true })));
  await client.sees((text) => text.includes("data: {}"));
  client.leave();
  await nothingLeft(peers);
});

test("35 a decode leg is not sent for KV that would expire before it is fetched", async () => {
  let aheadMs = 0;
  const clock = { nowMs: () => performance.now() + aheadMs };
  await using peers = await startNixl({ leaseMs: 10_000, clock });
  const { scheduler } = peers.setup.router;
  const prefilled = scheduler.prefilled.bind(scheduler);
  // From the answer of the prefill engine to the connection for the decode leg, the better part of the lease passes.
  scheduler.prefilled = (...given) => {
    prefilled(...given);
    aheadMs += 6_000;
  };
  assert.equal((await ask(peers, longChat())).status, 200);
  assert.deepEqual([peers.fetched, peers.alone, peers.prefill.requests.length], [0, 1, 1]);
  aheadMs += 10_000;
  await nothingLeft(peers);
});
