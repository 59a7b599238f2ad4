import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import type { RecordedEngine } from "../unit/engines/recordedEngine.ts";

export interface LiveServer {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /** Connections accepted so far. */
  readonly connections: () => number;
}

/** An HTTP server on loopback that ends with the test. */
export async function serve(
  t: TestContext,
  answer: RequestListener,
  host = "127.0.0.1",
  port = 0,
): Promise<LiveServer> {
  const server = createServer(answer);
  let connections = 0;
  server.on("connection", () => connections++);
  server.listen(port, host);
  await once(server, "listening");
  t.after(() => shut(server));
  const address = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`,
    port: address.port,
    server,
    connections: () => connections,
  };
}

/** Closes at once, as a process that dies. */
export function shut(server: Server): void {
  server.closeAllConnections();
  server.close();
}

/** Gives a recorded engine's answers over HTTP. */
export function recordedAnswers(engine: RecordedEngine): RequestListener {
  return (request: IncomingMessage, response) => {
    void engine.ask(request.url ?? "/").then((answer) => {
      response.writeHead(answer.status, { "content-type": answer.headers["content-type"] ?? "text/plain" });
      response.end(answer.body);
    });
  };
}
