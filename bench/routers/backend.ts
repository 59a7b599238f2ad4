// Engines that answer at once: what is left in a measurement is the router's own cost.
// usage: node bench/routers/backend.ts PORT…   (one process serves all ports)
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

const MODEL = "bench-model";
const EVENTS = Number(process.env["BENCH_EVENTS"] ?? 100);
const EVENT_EVERY_MS = Number(process.env["BENCH_EVENT_EVERY_MS"] ?? 10);

const unaryBody = Buffer.from(
  JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: 1,
    model: MODEL,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "four words of answer" },
        finish_reason: "stop",
        logprobs: null,
      },
    ],
    usage: {
      prompt_tokens: 500,
      completion_tokens: 4,
      total_tokens: 504,
      prompt_tokens_details: { cached_tokens: 256 },
    },
  }),
);
const chunk = (choices: unknown[], extra: object = {}): Buffer =>
  Buffer.from(
    `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1, model: MODEL, choices, ...extra })}\n\n`,
  );
const token = chunk([{ index: 0, delta: { content: " token" }, logprobs: null, finish_reason: null, token_ids: null }]);
const usage = chunk([], { usage: { prompt_tokens: 500, completion_tokens: EVENTS, total_tokens: 500 + EVENTS } });
const done = Buffer.from("data: [DONE]\n\n");

const facts: Record<string, string> = {
  "/v1/models": JSON.stringify({
    object: "list",
    data: [
      { id: MODEL, object: "model", created: 1, owned_by: "vllm", root: MODEL, parent: null, max_model_len: 131072 },
    ],
  }),
  "/version": JSON.stringify({ version: "0.32.0" }),
  "/health": "",
  "/get_model_info": JSON.stringify({
    model_path: MODEL,
    served_model_name: MODEL,
    tokenizer_path: "",
    is_generation: true,
  }),
  "/model_info": JSON.stringify({
    model_path: MODEL,
    served_model_name: MODEL,
    tokenizer_path: "",
    is_generation: true,
  }),
  "/get_server_info": JSON.stringify({ model_path: MODEL, served_model_name: MODEL, tp_size: 1, dp_size: 1 }),
  "/server_info": JSON.stringify({ model_path: MODEL, served_model_name: MODEL, tp_size: 1, dp_size: 1 }),
  "/metrics": [
    `vllm:num_requests_running{engine="0",model_name="${MODEL}"} 1.0`,
    `vllm:num_requests_waiting{engine="0",model_name="${MODEL}"} 0.0`,
    `vllm:kv_cache_usage_perc{engine="0",model_name="${MODEL}"} 0.1`,
    `vllm:cache_config_info{block_size="16",num_gpu_blocks="40000",enable_prefix_caching="True",engine="0"} 1.0`,
    "",
  ].join("\n"),
};

const streams = new Set<{ response: ServerResponse; left: number }>();
setInterval(() => {
  for (const stream of streams) {
    if (stream.response.destroyed) {
      streams.delete(stream);
    } else if (stream.left > 0) {
      stream.left--;
      stream.response.write(token);
    } else {
      streams.delete(stream);
      stream.response.write(usage);
      stream.response.end(done);
    }
  }
}, EVENT_EVERY_MS);

function answer(response: ServerResponse, streamed: boolean): void {
  if (!streamed) {
    response.writeHead(200, { "content-type": "application/json", "content-length": unaryBody.length });
    response.end(unaryBody);
    return;
  }
  response.socket?.setNoDelay(true);
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.write(chunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]));
  streams.add({ response, left: EVENTS });
}

function handle(request: IncomingMessage, response: ServerResponse): void {
  const fact = facts[request.url ?? ""];
  if (request.method === "GET" && fact !== undefined) {
    response.writeHead(200, {
      "content-type": request.url === "/metrics" ? "text/plain" : "application/json",
      "content-length": Buffer.byteLength(fact),
    });
    response.end(fact);
    return;
  }
  let head: Buffer | null = null;
  request.on("data", (bytes: Buffer) => {
    head ??= bytes;
  });
  request.on("end", () => {
    // Some routers write the body anew with its members in another order; only short bodies are streamed here.
    answer(response, head !== null && head.length < 8192 && head.includes('"stream":true'));
  });
}

for (const port of process.argv.slice(2).map(Number)) {
  const server = createServer({ keepAliveTimeout: 60_000 }, handle);
  server.listen(port, "127.0.0.1", () => console.log(`backend ${port}`));
}
process.on("SIGTERM", () => process.exit(0));
