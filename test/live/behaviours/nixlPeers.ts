// A prefill and a decode engine that hand over as vLLM's NIXL connector does, and insist on its rules.
import { MODEL, setUp, until } from "../gatewaySetup.ts";
import type { Setup } from "../gatewaySetup.ts";
import { json } from "../dispatchRig.ts";
import type { Received } from "../dispatchRig.ts";
import { processClock, type Clock } from "#src/determinism/clock.ts";
import type { ConfigInput } from "#src/config/schema.ts";
import { answer, asked, headerOf, stream, Worker } from "./worker.ts";

/** More digits than a JavaScript number keeps, in a member that nobody knows. */
const EXACT = "9007199254740993123";

export interface Nixl extends AsyncDisposable {
  readonly prefill: Worker;
  readonly decode: Worker;
  /** KV that waits at the prefill engine to be fetched, by request. */
  readonly held: Map<string, number>;
  /** What no router may do; empty at the end of every test. */
  readonly broken: string[];
  /** KV that was fetched. */
  fetched: number;
  /** Whole requests that the decode engine did alone. */
  alone: number;
  /** What each side does next, instead of answering; each is done once. */
  readonly next: { prefill: Step[]; decode: Step[] };
  readonly setup: Setup;
}

export type Step = (request: Received) => void;

/** How long a decode engine may wait before it fetches, on the real clock. */
export interface NixlOptions {
  readonly leaseMs?: number;
  readonly config?: ConfigInput;
  readonly clock?: Clock;
}

/** @returns both engines and a router for which two are better than one for every long prompt: others decode on the one side */
export async function startNixl({
  leaseMs = 30_000,
  config = {},
  clock = processClock,
}: NixlOptions = {}): Promise<Nixl> {
  const held = new Map<string, number>();
  const broken: string[] = [];
  const next: Nixl["next"] = { prefill: [], decode: [] };
  const prefill = await Worker.start((request) => {
    const step = next.prefill.shift();
    if (step === undefined) prefillAnswer(request, held, leaseMs, broken);
    else step(request);
  });
  const decode = await Worker.start((request) => {
    const step = next.decode.shift();
    if (step === undefined) decodeAnswer(request, peers);
    else step(request);
  });
  const labels = { host: "h" };
  // With others, whom a prompt would hold up.
  decode.probed.running = 40;
  const setup = await setUp(
    [],
    {
      engines: [
        { url: prefill.url, role: "prefill", labels, prior: "llama-3.1-8b/h100_tp1", handoff: { leaseMs } },
        { url: decode.url, role: "decode", labels, prior: "llama-3.1-8b/h100_tp1" },
      ],
      models: { [MODEL]: { kvBytesPerToken: 1 } },
      ...config,
    },
    2,
    clock,
  );
  await until(
    "the decode engine is known to be busy",
    () => setup.router.fleet.byId(decode.id)?.metrics?.value.runningRequests === 40,
  );
  const peers: Nixl = {
    prefill,
    decode,
    held,
    broken,
    fetched: 0,
    alone: 0,
    next,
    setup,
    async [Symbol.asyncDispose]() {
      await setup[Symbol.asyncDispose]();
      await prefill[Symbol.asyncDispose]();
      await decode[Symbol.asyncDispose]();
    },
  };
  return peers;
}

export function prefillAnswer(request: Received, held: Map<string, number>, leaseMs: number, broken: string[]): void {
  const body = asked(request);
  const id = headerOf(request, "x-request-id") ?? "";
  const params = body["kv_transfer_params"] as Record<string, unknown> | undefined;
  if (params?.["do_remote_decode"] !== true) broken.push("a prefill leg that asks for no remote decode");
  if (body["stream"] === true || body["stream_options"] !== undefined) broken.push("a prefill leg that streams");
  if (body["min_tokens"] !== undefined) broken.push("a prefill leg with min_tokens");
  if ((body["max_tokens"] ?? body["max_output_tokens"]) !== 1) broken.push("a prefill leg of more than one token");
  held.set(id, performance.now() + leaseMs);
  const text = json({
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "w" }, finish_reason: "length" }],
    usage: { prompt_tokens: 4000, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 0 } },
    kv_transfer_params: {
      do_remote_prefill: true,
      do_remote_decode: false,
      remote_block_ids: [[1, 2, 3]],
      remote_engine_id: "engine-1",
      remote_request_id: id,
      remote_host: "10.0.0.1",
      remote_port: 5600,
      exact: "EXACT",
    },
  });
  const exact = text.replace(`"EXACT"`, EXACT);
  const grown = EXACT.length - `"EXACT"`.length;
  request.socket.write(
    exact.replace(/Content-Length: (\d+)/, (_, bytes) => `Content-Length: ${Number(bytes) + grown}`),
  );
}

function decodeAnswer(request: Received, peers: Nixl): void {
  const { held, broken } = peers;
  const body = asked(request);
  const params = body["kv_transfer_params"] as Record<string, unknown> | undefined;
  if (params === undefined) peers.alone++;
  else {
    if (!request.body.includes(`"exact":${EXACT}`)) broken.push("parameters that are not the answer's, byte for byte");
    const id = String(params["remote_request_id"]);
    if (id !== headerOf(request, "x-request-id")) broken.push("legs with different ids");
    const untilMs = held.get(id);
    if (untilMs === undefined) broken.push("a decode leg for KV that nobody holds");
    else if (performance.now() > untilMs) broken.push("a decode leg for KV that has expired");
    held.delete(id);
    peers.fetched++;
  }
  request.socket.write(body["stream"] === true ? stream(3) : answer({ prompt: 4000, cached: 3999, output: 3 }));
}
