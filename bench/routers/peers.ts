import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A router under measurement: how to start it in front of these engines. Null: it cannot be had on this machine. */
export interface Peer {
  readonly name: string;
  readonly command: readonly string[];
}

const CACHE = join(import.meta.dirname, "../../.cache/peers");

/** Installs a router from PyPI into an environment of its own, once. Returns its command, or null without Python. */
function fromPyPi(requirement: string, command: string): string | null {
  const [name = requirement] = requirement.split("==");
  const venv = join(CACHE, name);
  const executable = join(venv, "bin", command);
  if (existsSync(join(venv, ".installed"))) return executable;
  mkdirSync(CACHE, { recursive: true });
  const quiet = { stdio: "ignore" } as const;
  if (spawnSync("python3", ["-m", "venv", venv], quiet).status !== 0) return null;
  if (spawnSync(join(venv, "bin/pip"), ["install", "-q", requirement], quiet).status !== 0) return null;
  writeFileSync(join(venv, ".installed"), requirement);
  return executable;
}

function nginx(port: number, engines: readonly number[]): Peer | null {
  if (spawnSync("nginx", ["-v"]).status !== 0) return null;
  const folder = join(CACHE, "nginx");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log ${folder}/access.log; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  client_max_body_size 64m; client_body_buffer_size 1m;
  upstream engines { ${engines.map((engine) => `server 127.0.0.1:${engine};`).join(" ")} keepalive 64; keepalive_requests 1000000; }
  server { listen 127.0.0.1:${port}; keepalive_requests 1000000;
    location / { proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}`,
  );
  return { name: "nginx", command: ["nginx", "-c", file, "-p", folder] };
}

function cacheAware(name: string, requirement: string, port: number, urls: readonly string[]): Peer | null {
  const executable = fromPyPi(requirement, name);
  if (executable === null) return null;
  const launch = name === "vllm-router" ? [] : ["launch"];
  const prometheus = ["--prometheus-port", String(port + 1)];
  const options = ["--host", "127.0.0.1", "--port", String(port), "--policy", "cache_aware", "--log-level", "warn"];
  if (name === "vllm-router") options.splice(options.length - 1, 1, "warning");
  return { name, command: [executable, ...launch, ...options, ...prometheus, "--worker-urls", ...urls] };
}

/** Every router that can be started here, on its own port, in front of the same engines. */
export function peers(firstPort: number, engines: readonly number[]): Peer[] {
  const urls = engines.map((engine) => `http://127.0.0.1:${engine}`);
  const kvasir: Peer = {
    name: "kvasir",
    command: [
      process.execPath,
      join(import.meta.dirname, "../../src/cli/main.ts"),
      "serve",
      "--host",
      "127.0.0.1",
      "--port",
      String(firstPort),
      "--admin-port",
      String(firstPort + 1),
      ...urls.flatMap((url) => ["--engine", url]),
    ],
  };
  return [
    kvasir,
    nginx(firstPort + 10, engines),
    cacheAware("sglang-router", "sglang-router==0.3.2", firstPort + 20, urls),
    cacheAware("smg", "smg==1.13", firstPort + 30, urls),
    cacheAware("vllm-router", "vllm-router==0.1.17", firstPort + 40, urls),
  ].filter((peer) => peer !== null);
}
