/**
 * The queue ahead of the ledger is bounded: submissions above the limit are rejected immediately, votes are accepted.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, ASKED, waitForSignature, startService, type Answer } from "../support/service.ts";
import { until } from "../support/wait.ts";

it("a full queue rejects submissions before their body is read, and accepts votes", needs("metrics"), async () => {
  let open = true;
  const service = await startService({
    storage: (folder) => {
      const store = sqliteStorage({ path: join(folder, "assent.db") });
      return {
        ...store,
        async write(work) {
          await until("the gate opens", () => open);
          return store.write(work);
        },
      };
    },
    change: ({ ledger }) => (ledger.max_queue = 5),
  });
  const { load } = service.runtime.host;
  let waiting: Promise<Answer> | null = null;
  try {
    const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
    const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
    await waitForSignature(service);
    open = false;
    // A wait for a decision does not count.
    const { size } = await service.runtime.host.ledger.head();
    waiting = service.call("POST", "/v1/actions", { body: ASKED, headers: { prefer: "wait=60" } });
    open = true;
    await until("it is recorded", async () => (await service.runtime.host.ledger.head()).size > size);
    await until("it is out", () => load.queued() === 0);
    await waitForSignature(service);
    open = false;
    const taken = Array.from({ length: 5 }, () => service.call("POST", "/v1/actions", { body: ALLOWED }));
    await until("they are in", () => load.queued() === 5);
    for (const [path, raw] of [
      ["/v1/actions", JSON.stringify(ALLOWED)],
      ["/v1/actions", "not even read"],
      [`/v1/actions/${id}/start`, "{}"],
      [`/v1/actions/${id}/result`, "{}"],
    ] as const) {
      const refused = await service.call("POST", path, { key: service.admin, raw });
      assert.deepEqual([refused.status, refused.body.code], [503, "OVERLOADED"], path);
      assert.equal(refused.headers.get("retry-after"), "1");
    }
    assert.equal((await service.call("GET", "/v1/actions")).status, 200, "who only looks does not wait");
    assert.match(
      String((await service.call("GET", "/metrics", { key: service.admin })).body),
      /^assent_ledger_queue_requests 5$/m,
    );
    const verdict = service.call("POST", `/v1/actions/${id}/approval`, {
      key: service.admin,
      body: { token, approve: true },
    });
    open = true;
    assert.equal((await verdict).body.status, "approved");
    for (const answer of await Promise.all(taken)) assert.equal(answer.status, 200);
    assert.equal((await service.call("POST", "/v1/actions", { body: ALLOWED })).status, 200, "there is room again");
  } finally {
    open = true;
    await service.close();
    assert.equal((await waiting)?.status, 202, "it was only waiting");
  }
});
