import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { MODEL } from "./gatewaySetup.ts";

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface ScriptedEngine extends AsyncDisposable {
  readonly url: string;
  readonly seen: SeenRequest[];
}

/** Passes for vLLM when it is probed, and answers everything else as the script says. */
export async function startScriptedEngine(
  script: (request: SeenRequest, response: ServerResponse) => void,
  tls: { cert: string; key: string } | null = null,
): Promise<ScriptedEngine> {
  const seen: SeenRequest[] = [];
  const answer = (incoming: IncomingMessage, response: ServerResponse): void => {
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      const { method = "", url = "", headers, rawHeaders } = incoming;
      if (/^\/(get_)?server_info\b/.test(url)) {
        response.writeHead(404).end();
        return;
      }
      const body = probeAnswer(url);
      if (method === "GET" && body !== null) {
        response.end(body);
        return;
      }
      const request = { method, url, headers, rawHeaders, body: Buffer.concat(pieces) };
      seen.push(request);
      script(request, response);
    });
  };
  const server = tls === null ? createServer(answer) : createTlsServer(tls, answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `${tls === null ? "http" : "https"}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function probeAnswer(url: string): string | null {
  const labels = `{engine="0",model_name="${MODEL}"}`;
  switch (url) {
    case "/health":
      return "";
    case "/version":
      return `{"version":"0.32.0"}`;
    case "/v1/models":
      return `{"object":"list","data":[{"id":"${MODEL}","object":"model","owned_by":"vllm","parent":null}]}`;
    case "/metrics":
      return `vllm:num_requests_running${labels} 0\nvllm:num_requests_waiting${labels} 0\n`;
    default:
      return null;
  }
}
