/**
 * The dashboard and the alert rules only query metrics that the service exports, and the rules fire in the situations
 * that they describe.
 * @needs coverage, metrics, ocsf
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import ocsf from "../../plugins/ocsf/index.ts";
import type { Plugin } from "../../src/plugin.ts";
import { ROOT } from "../support/process.ts";
import { startService, type Service } from "../support/service.ts";

const PROMETHEUS = join(ROOT, "deploy/prometheus");
const DASHBOARD = join(ROOT, "deploy/grafana/assent.json");
const withoutPromtool = spawnSync("promtool", ["--version"]).error === undefined ? false : "promtool is not installed";

const rules = (): { alert: string; expr: string }[] =>
  (
    parse(readFileSync(join(PROMETHEUS, "assent.rules.yaml"), "utf8")) as {
      groups: { rules: { alert: string; expr: string }[] }[];
    }
  ).groups.flatMap((group) => group.rules);
const panels = (): { id: number; title: string; targets: { expr: string }[] }[] =>
  (
    JSON.parse(readFileSync(DASHBOARD, "utf8")) as {
      panels: { id: number; title: string; targets: { expr: string }[] }[];
    }
  ).panels;
const metricsIn = (expr: string): string[] => expr.match(/\bassent_\w+/g) ?? [];

describe("the dashboard and the alert rules", () => {
  let service: Service;
  let reported: Set<string>;
  before(async () => {
    // An export with an unreachable sink: the folder does not exist.
    const exports = { siem: { file: join(PROMETHEUS, "none", "events.ndjson") } };
    service = await startService({
      plugins: [{ plugin: ocsf as Plugin, options: { exports }, origin: "ocsf", core: true }],
    });
    const metrics = await service.call("GET", "/metrics", { key: service.admin });
    reported = new Set(
      [...String(metrics.body).matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = "", kind]) =>
        kind === "histogram" ? ["_bucket", "_count", "_sum"].map((suffix) => name + suffix) : [name],
      ),
    );
  });
  after(() => service.close());

  test("name only metrics that the service reports", () => {
    assert.ok(reported.size > 20, `${reported.size} metrics`);
    const asked = [
      ...rules().map(({ alert, expr }) => ({ where: alert, expr })),
      ...panels().flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: title, expr }))),
    ];
    assert.ok(asked.length > 25);
    for (const { where, expr } of asked)
      for (const metric of metricsIn(expr)) assert.ok(reported.has(metric), `${where}: ${metric}`);
  });

  test("are accepted by promtool, and each tested alert fires in time", { skip: withoutPromtool }, () => {
    const promtool = (...args: string[]) => execFileSync("promtool", args, { cwd: PROMETHEUS, encoding: "utf8" });
    assert.match(promtool("check", "rules", "assent.rules.yaml"), /SUCCESS: 13 rules found/);
    assert.match(promtool("test", "rules", "assent.rules.test.yaml"), /SUCCESS/);
  });

  test("have panels with expressions that promtool can parse", { skip: withoutPromtool }, () => {
    const groups = [
      {
        name: "panels",
        rules: panels().flatMap(({ targets, id }) =>
          targets.map(({ expr }, at) => ({
            record: `panel:${id}:${at}`,
            expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$job", "assent"),
          })),
        ),
      },
    ];
    const file = join(service.folder, "panels.json");
    writeFileSync(file, JSON.stringify({ groups }));
    const { status, stderr } = spawnSync("promtool", ["check", "rules", "--lint=none", file], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
});
