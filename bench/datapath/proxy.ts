// The data path alone: no parsing, no prices, one engine after the other. `node bench/datapath/proxy.ts PORT ENGINE...`
import { processClock } from "#src/determinism/clock.ts";
import { processTimers } from "#src/determinism/timers.ts";
import { Carrier } from "#src/dispatch/carrier.ts";
import { Deadlines } from "#src/dispatch/deadlines.ts";
import type { Placed, SchedulerPort } from "#src/dispatch/schedulerPort.ts";
import { Upstreams } from "#src/dispatch/upstreams.ts";
import { toHttpError } from "#src/errors/openAiError.ts";
import { HTTP_LIMITS } from "#src/gateway/http/httpLimits.ts";
import { HttpServer } from "#src/gateway/http/httpServer.ts";
import { EMPTY_HASHES } from "#src/request/identity.ts";

const [port = "8080", ...engines] = process.argv.slice(2);
const placed: Placed[] = engines.map((url) => ({
  replica: { id: url, endpoint: { url, apiKey: null }, rank: null, profile: null },
}));

let turn = 0;
const scheduler: SchedulerPort<Placed, null> = {
  submit(_request, _nowMs, settle) {
    const placement = placed[turn++ % placed.length];
    if (placement !== undefined) settle(placement);
    return null;
  },
  cancel() {},
  prefilled() {},
  firstToken() {},
  progress() {},
  finish() {},
};

const clock = processClock;
const deadlines = new Deadlines({ clock, timers: processTimers, granularityMs: 100 });
const upstreams = new Upstreams({ clock, deadlines });
const carrier = new Carrier({ scheduler, upstreams, clock, maxRetries: 2 });
const limits = { connectMs: 2000, firstTokenMs: null, idleMs: 60_000, totalMs: null };
const identity = {
  hashes: EMPTY_HASHES,
  blockTokens: 16,
  promptTokens: 0,
  promptBytes: 0,
  approximate: true,
  unhashable: null,
};

let id = 0;
const server = new HttpServer({
  limits: HTTP_LIMITS,
  clock,
  deadlines,
  admit: () => null,
  render: (error) => toHttpError(error, "-"),
  handle({ head, body, release }, downstream) {
    const nowMs = clock.nowMs();
    const request = {
      id: `req-${String(id++).padStart(12, "0")}`,
      model: "m",
      adapter: null,
      identity,
      maxOutputTokens: null,
      sequences: 1,
      session: null,
      tenant: "anonymous",
      className: "default",
      arrivedMs: nowMs,
      deadlineMs: Number.POSITIVE_INFINITY,
      bodyBytes: body.length,
      generates: true,
    };
    void carrier
      .carry({
        request,
        method: head.method,
        target: head.target,
        headers: head.headers,
        body: () => [body],
        downstream,
        limits,
        streamed: true,
        stripUsage: process.env["STRIP_USAGE"] === "1",
      })
      .then(({ error, bodyFree }) => {
        if (bodyFree) release();
        if (error === null || downstream.started || !downstream.open) return;
        const { status, headers, body: text } = toHttpError(error, request.id);
        const bytes = Buffer.from(text);
        downstream.start(status, [...Object.entries(headers).flat(), "content-length", String(bytes.length)], "length");
        downstream.write(bytes);
        downstream.end();
      });
  },
});
await server.listen({ host: "127.0.0.1", port: Number(port) });
process.on("SIGINT", () => process.exit(0));
