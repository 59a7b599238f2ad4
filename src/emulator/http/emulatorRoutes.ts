import { z } from "zod";
import { FaultSettings } from "../faults.ts";
import type { Exchange } from "./exchange.ts";
import { numberField, parseJsonBody, type JsonBody } from "./jsonBody.ts";
import { badRequest } from "./vllmError.ts";

/** `GET /emulator/faults` */
export function answerFaults(exchange: Exchange): void {
  exchange.answerJson(exchange.context.faults.current);
}

/** `POST /emulator/faults`: changes the named faults; `{}` changes nothing. `DELETE` clears all. */
export function changeFaults(exchange: Exchange): void {
  const body = bodyOf(exchange);
  const changes = FaultSettings.partial().safeParse(body);
  if (!changes.success) throw badRequest(z.prettifyError(changes.error));
  const named = Object.keys(body);
  const given = Object.fromEntries(Object.entries(changes.data).filter(([name]) => named.includes(name)));
  if (given["refuse"] === true) {
    // The answer has to leave before the connection is cut.
    exchange.response.once("finish", () => void exchange.context.faults.set(given));
    exchange.answerJson({ ...exchange.context.faults.current, ...given });
    return;
  }
  void exchange.context.faults.set(given).then(() => answerFaults(exchange));
}

export function clearFaults(exchange: Exchange): void {
  void exchange.context.faults.clear().then(() => answerFaults(exchange));
}

/** `POST /emulator/restart` with an optional `{"downMs": 500}`; answers before it goes down. */
export function answerRestart(exchange: Exchange): void {
  const downMs = numberField(bodyOf(exchange), "downMs") ?? 0;
  exchange.response.once("finish", () => void exchange.context.restart(downMs));
  exchange.answerJson({ restarting: true });
}

/** `GET /emulator/stats`, without the requests kept whole. */
export function answerStats(exchange: Exchange): void {
  const { received: _, ...stats } = exchange.context.stats();
  exchange.answerJson(stats);
}

/** JSON whatever the content type says, as these routes are for `curl -d`. */
function bodyOf(exchange: Exchange): JsonBody {
  return exchange.body.length === 0 ? {} : parseJsonBody("application/json", exchange.body);
}
