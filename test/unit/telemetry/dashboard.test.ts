import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { parseConfig } from "#src/config/loadConfig.ts";
import { Metrics } from "#src/telemetry/metrics.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

interface Dashboard {
  readonly title: string;
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[];
  };
}

const deploy = (file: string): string => readFileSync(new URL(`../../../deploy/${file}`, import.meta.url), "utf8");
const dashboard = JSON.parse(deploy("grafana/kvasir.json")) as Dashboard;
const charts = dashboard.panels.filter(({ type }) => type !== "row");

/** Names of metrics in a PromQL expression, without what Prometheus adds to a histogram's. */
function metricsIn(expression: string): string[] {
  return [...expression.matchAll(/kvasir_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ""));
}

describe("the Grafana dashboard", () => {
  test("can be imported: version, a data source to choose, panels with ids of their own inside the grid", () => {
    assert.ok(dashboard.schemaVersion >= 36);
    assert.ok(dashboard.title.length > 0 && dashboard.uid.length > 0);
    const source = dashboard.templating.list.find(({ name }) => name === "datasource");
    assert.deepEqual([source?.type, source?.query], ["datasource", "prometheus"]);
    const ids = dashboard.panels.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    for (const { title, gridPos } of dashboard.panels)
      assert.ok(gridPos.w > 0 && gridPos.h > 0 && gridPos.x >= 0 && gridPos.x + gridPos.w <= 24, title);
    for (const { title, datasource, targets } of charts) {
      assert.equal(datasource?.uid, "${datasource}", title);
      assert.ok(targets !== undefined && targets.length > 0, title);
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
    }
  });

  test("panels do not overlap", () => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of dashboard.panels)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.equal(taken.get(`${x} ${y}`), undefined, `${title} lies over ${taken.get(`${x} ${y}`)}`);
          taken.set(`${x} ${y}`, title);
        }
  });

  test("shows metrics that exist, and all of them", () => {
    const metrics = new Metrics();
    try {
      const existing = new Set(metrics.registry.getMetricsAsArray().map(({ name }) => name));
      const shown = new Set(charts.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => metricsIn(expr))));
      assert.deepEqual(
        [...shown].filter((name) => !existing.has(name)),
        [],
        "not in the registry",
      );
      assert.deepEqual(
        [...existing].filter((name) => !shown.has(name)),
        [],
        "on no panel",
      );
      for (const { query } of dashboard.templating.list)
        for (const name of metricsIn(JSON.stringify(query))) assert.ok(existing.has(name), name);
    } finally {
      metrics.close();
    }
  });
});

test("the Prometheus example scrapes where the admin listener is by default", () => {
  const { scrape_configs: jobs } = parse(deploy("prometheus.yml")) as {
    scrape_configs: { metrics_path: string; static_configs: { targets: string[] }[] }[];
  };
  const { admin } = parseConfig("", {});
  assert.deepEqual(
    jobs.map((job) => [job.metrics_path, job.static_configs[0]?.targets]),
    [["/metrics", [`${admin.host}:${admin.port}`]]],
  );
});
