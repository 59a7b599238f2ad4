import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { parseConfig } from "#src/config/loadConfig.ts";
import { checkConfig } from "#src/gateway/checkConfig.ts";

const root = new URL("../../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Manifest {
  readonly kind: string;
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly ports: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly {
          readonly args: readonly string[];
          readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
          readonly volumeMounts: readonly { readonly mountPath: string }[];
          readonly readinessProbe: Probe;
          readonly livenessProbe: Probe;
        }[];
      };
    };
  };
}

describe("the Kubernetes manifest", () => {
  const documents = parseAllDocuments(read("deploy/kubernetes/kvasir.yaml"));
  const kind = (wanted: string): Manifest =>
    documents.map((document) => document.toJS() as Manifest).find((one) => one.kind === wanted) ?? assert.fail(wanted);
  const config = parseConfig(kind("ConfigMap").data["kvasir.yaml"] ?? "", { KVASIR_ADMIN_TOKEN: "0123456789" });

  it("holds a configuration that can be used", async () => {
    assert.deepEqual(
      documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]),
      [],
    );
    await checkConfig(config);
  });

  it("has the ports of that configuration, and probes that need no token", () => {
    const [container] = kind("Deployment").spec.template.spec.containers;
    assert.deepEqual(container?.ports, [
      { name: "http", containerPort: config.listen.port },
      { name: "admin", containerPort: config.admin.port },
    ]);
    assert.deepEqual(
      kind("Service").spec.ports.map(({ targetPort }) => targetPort),
      ["http", "admin"],
    );
    assert.deepEqual(container?.readinessProbe.httpGet, { path: "/readyz", port: "http" });
    assert.deepEqual(container?.livenessProbe.httpGet, { path: "/healthz", port: "http" });
    assert.equal(container?.args.at(-1), `${container?.volumeMounts[0]?.mountPath}/kvasir.yaml`);
  });

  it("gives a draining router the time that it may take", () => {
    const { drainDelayMs, drainGraceMs } = config.limits;
    const { terminationGracePeriodSeconds } = kind("Deployment").spec.template.spec;
    assert.ok(terminationGracePeriodSeconds * 1000 > drainDelayMs + drainGraceMs);
  });
});

describe("the systemd unit", () => {
  const unit = read("deploy/systemd/kvasir.service");

  it("starts what there is, and gives a draining router the time that it may take by default", () => {
    const [, script = ""] = /^ExecStart=\S+ \/opt\/kvasir\/(\S+) serve -c \S+$/m.exec(unit) ?? [];
    assert.match(read(script), /cli\/main\.ts/);
    const { drainDelayMs, drainGraceMs } = parseConfig("", {}).limits;
    assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) * 1000 > drainDelayMs + drainGraceMs);
  });
});

describe("the container image", () => {
  const dockerfile = read("deploy/Dockerfile");
  const taken = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = ""]) => names.split(" "));

  it("takes files that there are, and that .dockerignore lets through", () => {
    const there = readdirSync(root);
    const through = read(".dockerignore").split("\n");
    for (const name of taken) {
      assert.ok(there.includes(name), name);
      assert.ok(through.includes(`!${name}`), `.dockerignore: ${name}`);
    }
  });

  it("has every folder that the code reads", () => {
    const sources = readdirSync(new URL("src/", root), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts"))
      .map((path) => read(`src/${path}`));
    const outside = sources.flatMap((text) => [
      ...text.matchAll(/"(?:\.\.\/)+(web|bin|docs|deploy|package\.json|kvasir\.schema\.json)/g),
    ]);
    assert.ok(outside.length > 0);
    for (const [, name = ""] of outside) assert.ok(taken.includes(name), name);
  });
});
