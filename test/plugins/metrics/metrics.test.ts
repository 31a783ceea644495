/** Metrics in Prometheus's format. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ALLOWED, ASKED, startService, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

describe("metrics", () => {
  const folder = temporaryFolder("assent-metrics-");
  let service: Service;
  before(async () => {
    writeFileSync(
      join(folder, "stripe.yaml"),
      "policy: p\nrules:\n  - { name: ask, tool: stripe, when: params.amount > 100, effect: require_approval }\n  - { name: go, tool: stripe, effect: allow }\n",
    );
    service = await startService({ policies: folder, pluginOptions: { "policy-files": { poll_seconds: 0.1 } } });
  });
  after(async () => {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function read(): Promise<Map<string, number>> {
    const { status, headers, body } = await service.call("GET", "/metrics", { key: service.admin });
    assert.equal(status, 200);
    assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
    return new Map(
      (body as string)
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("#"))
        .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
    );
  }

  it("count decisions by effect and requests by route, with no labels that clients control", async () => {
    for (let i = 0; i < 3; i++) await service.call("POST", "/v1/actions", { body: ALLOWED });
    await service.call("POST", "/v1/actions", { body: ASKED });
    await service.call("GET", "/v1/made-up/by-a-client", { key: service.admin });
    const seen = await read();
    assert.equal(seen.get('assent_decisions_total{effect="allow",reason_code="POLICY_RULE"}'), 3);
    assert.equal(seen.get('assent_decisions_total{effect="require_approval",reason_code="POLICY_RULE"}'), 1);
    assert.equal(seen.get("assent_ledger_size"), (await service.storage.head()).size);
    assert.equal(
      seen.get('assent_http_request_duration_seconds_count{method="POST",route="/v1/actions",status="200"}'),
      3,
    );
    assert.equal(
      seen.get('assent_http_request_duration_seconds_count{method="POST",route="/v1/actions",status="202"}'),
      1,
    );
    assert.equal(seen.get('assent_http_request_duration_seconds_count{method="other",route="none",status="404"}'), 1);
    assert.ok(![...seen.keys()].some((name) => name.includes("made-up")));
  });

  it("measure how long each batch held the ledger's lock", async () => {
    const before = await read();
    await service.call("POST", "/v1/actions", { body: ALLOWED });
    const after = await read();
    const grew = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    assert.ok(grew("assent_ledger_lock_held_seconds_count") >= 1);
    assert.ok(grew("assent_ledger_lock_held_seconds_sum") > 0);
    assert.ok((after.get('assent_ledger_lock_held_seconds_bucket{le="0.0005"}') ?? -1) >= 0);
  });

  it("count decisions with any text in their fields", async () => {
    const denials = 'assent_decisions_total{effect="deny",reason_code="POLICY_RULE"}';
    const before = (await read()).get(denials) ?? 0;
    const reason = 'a line\u2028 and "effect":"allow" \r\n another';
    const body = { policy: "odd", rules: [{ name: "r", tool: "odd", effect: "deny", reason }] };
    assert.equal((await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body })).status, 201);
    const { body: action } = await service.call("POST", "/v1/actions", { body: { ...ALLOWED, tool: "odd" } });
    assert.deepEqual([action.decision, action.reason], ["deny", reason]);
    assert.equal((await read()).get(denials), before + 1);
    await service.call("DELETE", "/v1/policies/odd", { key: service.admin });
  });

  it("report since when a policy source offers policies that cannot be loaded, and when that ends", async () => {
    assert.deepEqual(
      [
        (await read()).get("assent_policy_source_stale"),
        (await read()).has("assent_policy_source_stale_since_seconds"),
      ],
      [0, false],
    );
    writeFileSync(join(folder, "bad.yaml"), "policy: bad\nrules:\n  - { name: r, effect: perhaps }\n");
    await until("the fault shows", async () => (await read()).get("assent_policy_source_stale") === 1);
    const stale = await read();
    assert.ok(
      [...stale.keys()].some((name) =>
        /^assent_policy_source_fault\{file="bad\.yaml",line="3",column="\d+"\}$/.test(name),
      ),
    );
    assert.ok(Math.abs((stale.get("assent_policy_source_stale_since_seconds") ?? 0) - Date.now() / 1000) < 60);
    assert.equal(stale.get("assent_policies_active"), 1);
    rmSync(join(folder, "bad.yaml"));
    await until("the fault is over", async () => (await read()).get("assent_policy_source_stale") === 0);
    assert.ok(![...(await read()).keys()].some((name) => name.startsWith("assent_policy_source_fault{")));
  });

  it("require the scope", async () => {
    assert.equal((await service.call("GET", "/metrics", { key: null })).status, 401);
    assert.equal((await service.call("GET", "/metrics")).status, 403);
  });

  it("count pending actions, and report the age of the oldest", async () => {
    const before = await read();
    assert.deepEqual(
      ["scheduled", "waiting", "dead"].map((state) => before.get(`assent_deliveries{state="${state}"}`)),
      [0, 0, 0],
    );
    assert.ok(![...before.keys()].some((name) => name.startsWith("assent_deliveries_oldest_age_seconds")));
    await service.call("POST", "/v1/actions", { body: ASKED });
    service.clock.now += 600_000;
    const seen = await read();
    const waiting = await service.storage.actions({ visibility: { all: true }, status: "pending_approval", limit: 10 });
    assert.equal(seen.get("assent_approvals_pending"), waiting.length);
    const age = seen.get("assent_approvals_pending_oldest_age_seconds") ?? 0;
    assert.ok(age >= 600, String(age));
    for (const { id } of waiting)
      await service.call("POST", `/v1/actions/${id}/cancel`, { key: service.admin, body: {} });
    const over = await read();
    assert.deepEqual(
      [over.get("assent_approvals_pending"), over.has("assent_approvals_pending_oldest_age_seconds")],
      [0, false],
    );
  });
});
