/**
 * A stop takes effect on every process as soon as it is acknowledged, and is accepted even while the service is
 * overloaded.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { hasFeature } from "../../support/features.ts";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { decodeEntry, type DecisionEntry } from "../../../src/domain/entries.ts";
import type { StopEntry } from "../../../plugins/stop/entry.ts";
import { newKey } from "../../support/keys.ts";
import { startPostgres, withoutPostgres } from "../../support/postgres.ts";
import { ALLOWED, ASKED, waitForSignature, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const submit = (service: Service, key = service.agent): Promise<Answer> =>
  service.call("POST", "/v1/actions", { key, body: ALLOWED });
const place = (service: Service, key = service.admin): Promise<Answer> =>
  service.call("POST", "/v1/stop", { key, body: { reason: "drill" } });

it("a stop is placed despite a full queue and an exhausted rate limit, and the queued submissions are denied", async () => {
  let open = true;
  let held = 0;
  const service = await startService({
    storage: (folder) => {
      const store = sqliteStorage({ path: join(folder, "assent.db") });
      return {
        ...store,
        async write(work) {
          if (!open) held++;
          await until("the gate opens", () => open);
          return store.write(work);
        },
      };
    },
    change: (config) => {
      config.ledger.max_queue = 5;
      config.rate_limits.per_key = { requests: 20, seconds: 3600 };
    },
  });
  try {
    await waitForSignature(service);
    open = false;
    const first = submit(service);
    await until("its batch waits", () => held === 1);
    const waiting = [1, 2, 3, 4].map(() => submit(service));
    await until("the queue is full", () => service.runtime.host.load.queued() === 5);
    assert.equal((await submit(service)).body.code, "OVERLOADED");
    let limited = 0;
    while (limited !== 429) limited = (await service.call("GET", "/v1/actions", { key: service.admin })).status;
    const stop = place(service);
    open = true;
    assert.equal((await stop).status, 201);
    assert.equal((await first).body.status, "allowed");
    for (const { body } of await Promise.all(waiting)) assert.equal(body.reason_code, "STOPPED");
    // Requests without the permission to stop count against the rate limit as usual.
    for (let i = 0; i < 20; i++) await place(service, service.agent);
    assert.equal((await place(service, service.agent)).status, 429);
  } finally {
    open = true;
    await service.close();
  }
});

/**
 * A reversal of a suggested rule takes effect on the other process as soon as it is acknowledged. Only a person can
 * undo it.
 */
async function flagOnOneProcess(one: Service, two: Service): Promise<void> {
  const { admin, agent } = one;
  const pending = await one.call("POST", "/v1/actions", { key: agent, body: ASKED });
  const { policy, rule } = pending.body;
  const suggested = {
    policy: "suggested",
    suggested: { in_place_of: { policy, rule } },
    rules: [{ name: "r", tool: ASKED.tool, operation: ASKED.operation, agent: ASKED.agent_id, effect: "allow" }],
  };
  await one.call("POST", "/v1/policies?activate=true", { key: admin, body: { ...suggested, mode: "shadow" } });
  await two.call("PUT", "/v1/policies/suggested?activate=true", { key: admin, body: suggested });
  const effectOn = async (service: Service): Promise<string> =>
    (await service.call("POST", "/v1/actions", { key: agent, body: ASKED })).body.decision;
  const use = (await one.call("POST", "/v1/actions", { key: agent, body: ASKED })).body;
  assert.equal(use.decision, "allow");
  const flag = { key: admin, body: { action_id: use.id, reason: "not this one" } };
  for (const [here, there] of [
    [one, two],
    [two, one],
  ] as const) {
    assert.deepEqual([await effectOn(here), await effectOn(there)], ["allow", "allow"]);
    const busy = Array.from({ length: 20 }, (_, i) => effectOn(i % 2 === 0 ? here : there));
    assert.equal((await here.call("POST", "/v1/suggested-rules/suggested/flag", flag)).status, 200);
    assert.deepEqual([await effectOn(there), await effectOn(here)], ["require_approval", "require_approval"]);
    await Promise.all(busy);
    const restored = { key: admin, body: { reason: "it was right" } };
    assert.equal((await there.call("POST", "/v1/suggested-rules/suggested/restore", restored)).status, 200);
  }
  await one.call("POST", "/v1/policies/suggested/deactivate", { key: admin });
}

describe("on two processes and one Postgres", { skip: withoutPostgres }, () => {
  it("no process allows an action that the ledger records after a stop", async () => {
    const server = await startPostgres();
    const url = await server.database();
    const key = newKey();
    const services: Service[] = [];
    try {
      for (let i = 0; i < 2; i++)
        services.push(
          await startService({
            storage: () => postgresStorage({ url, poolSize: 3 }),
            change(config) {
              config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
              config.ledger.key = key;
              config.ledger.origin = "stop.test/log";
            },
          }),
        );
      const [one, two] = services as [Service, Service];
      const { admin, agent } = one;
      for (let round = 0; round < 3; round++) {
        const busy = Array.from({ length: 40 }, (_, i) => submit(i % 2 === 0 ? one : two, agent));
        const stop = place(round % 2 === 0 ? one : two, admin);
        busy.push(...Array.from({ length: 20 }, (_, i) => submit(i % 2 === 0 ? one : two, agent)));
        const { id } = (await stop).body;
        const other = round % 2 === 0 ? two : one;
        assert.equal((await submit(other, agent)).body.reason_code, "STOPPED", "from the answer on");
        const dry = await other.call("POST", "/v1/gate/decide", { key: agent, body: ALLOWED });
        assert.equal(dry.body.reason_code, "STOPPED");
        assert.equal((await other.call("GET", "/readyz", { key: null })).body.stops.held, 1);
        await Promise.all(busy);
        const lifted = await other.call("POST", `/v1/stop/${id}/lift`, { key: admin, body: {} });
        assert.equal(lifted.status, 200);
        for (const service of services) assert.equal((await submit(service, agent)).body.status, "allowed");
      }
      let holds = false;
      let denied = 0;
      for (const row of await one.storage.entries(0, (await one.storage.head()).size)) {
        if (row.type === "stop") holds = decodeEntry<StopEntry>(row.bytes).change === "placed";
        if (row.type !== "decision") continue;
        assert.equal(decodeEntry<DecisionEntry>(row.bytes).status, holds ? "denied" : "allowed", `entry ${row.seq}`);
        denied += holds ? 1 : 0;
      }
      assert.ok(denied >= 3);
      if (hasFeature("suggestions")) await flagOnOneProcess(one, two);
    } finally {
      for (const service of services) await service.close();
      await server.stop();
    }
  });
});
