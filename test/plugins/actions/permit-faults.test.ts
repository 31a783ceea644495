/** `Prefer: permit` when no permit can be issued: the action is already recorded, and the response must include it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, mock, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { withFaults, type Faults } from "../../../src/testing/faults.ts";
import { ALLOWED, approve, ASKED, startService, type Answer, type Service } from "../../support/service.ts";

let service: Service;
let faults: Faults;
before(async () => {
  service = await startService({
    storage(folder) {
      const storage = withFaults(sqliteStorage({ path: join(folder, "assent.db") }));
      faults = storage.faults;
      return storage;
    },
  });
});
after(() => service.close());

const submit = (body: object): Promise<Answer> =>
  service.call("POST", "/v1/actions?join=open", { body, headers: { prefer: "permit" } });

test("a new action is returned without a permit, and a repeated request gets one", async () => {
  const broken = mock.method(service.runtime.host.permits, "make", () => Promise.reject(new Error("no signer")));
  const { status, body, headers } = await submit(ALLOWED);
  broken.mock.restore();
  assert.deepEqual([status, body.status, body.permit], [200, "allowed", null], JSON.stringify(body));
  assert.equal(headers.get("preference-applied"), null);
  assert.ok(service.logged.some((line) => line.includes("could not issue a permit") && line.includes(body.id)));
  const asked = await service.call("POST", `/v1/actions/${body.id}/permit`, { body: {} });
  assert.equal(asked.status, 200, JSON.stringify(asked.body));
  const started = await service.call("POST", `/v1/actions/${body.id}/start`, { body: { permit: asked.body.permit } });
  assert.equal(started.body.status, "executing");
});

test("an approved action is returned unchanged if it cannot be evaluated again", async () => {
  const { body: waits } = await submit(ASKED);
  await approve(service, waits.id);
  // The first read joins the action, the second decides it again.
  faults.failNext("tx.approvals", "not-persisted", { skip: 1 });
  const { status, body, headers } = await submit(ASKED);
  assert.equal(faults.waiting, 0, "the fault struck");
  assert.deepEqual([status, body.id, body.status, body.permit], [200, waits.id, "approved", null]);
  assert.deepEqual([headers.get("action-joined"), headers.get("preference-applied")], ["true", null]);
  const again = await submit(ASKED);
  assert.deepEqual([again.body.id, again.headers.get("preference-applied")], [waits.id, "permit"]);
});
