/** Old idempotency keys are deleted, and no repeated request runs a second time because of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createIdempotencySweep } from "../../../src/cluster/sweep-idempotency.ts";
import { ALLOWED, ASKED, DENIED, startService, type Answer } from "../../support/service.ts";

const DAY = 86_400_000;

test("a key is deleted after its retention, unless its action might have run: its response is repeated at any later time", async () => {
  const service = await startService();
  try {
    const submit = (key: string, body: object): Promise<Answer> =>
      service.call("POST", "/v1/actions", { body, headers: { "idempotency-key": key } });
    const decide = async (id: string, approve: boolean): Promise<void> => {
      const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
      const path = `/v1/actions/${id}/approval`;
      assert.equal((await service.call("POST", path, { key: service.admin, body: { token, approve } })).status, 200);
    };
    const first: Record<string, string> = {};
    for (const [key, body] of Object.entries({
      allowed: ALLOWED,
      denied: DENIED,
      refused: ASKED,
      approved: ASKED,
      late: ASKED,
    }))
      first[key] = (await submit(key, body)).body.id as string;
    const tokens = {
      late: (await service.call("GET", `/v1/actions/${first["late"]}`, { key: service.admin })).body.approval_token,
    };
    await decide(first["refused"] as string, false);
    await decide(first["approved"] as string, true);
    const sweep = createIdempotencySweep({
      storage: service.storage,
      ledger: service.runtime.host.ledger,
      lease: { isLeader: () => Promise.resolve(true), release: () => Promise.resolve() },
      keepMs: 30 * DAY,
      clock: () => service.runtime.host.clock(),
      log: service.runtime.host.log,
    });
    service.clock.now += 29 * DAY;
    assert.equal(await sweep.sweep(), 0);
    const fresh = (await submit("young", DENIED)).body.id as string;
    service.clock.now += 2 * DAY;
    // The first request after the expiry records it.
    await service.call("POST", `/v1/actions/${first["late"]}/approval`, {
      key: service.admin,
      body: { token: tokens.late, approve: true },
    });
    assert.equal((await service.storage.action(first["late"] as string))?.status, "expired");
    assert.equal(await sweep.sweep(), 3);
    assert.equal(await sweep.sweep(), 0);
    for (const [key, body, again] of [
      ["allowed", ALLOWED, true],
      ["approved", ASKED, true],
      ["denied", DENIED, false],
      ["refused", ASKED, false],
      ["late", ASKED, false],
    ] as const) {
      const answer = await submit(key, body);
      assert.equal(answer.headers.get("idempotency-replayed"), again ? "true" : null, key);
      assert.equal(answer.body.id === first[key], again, key);
    }
    assert.equal((await submit("young", DENIED)).body.id, fresh);
  } finally {
    await service.close();
  }
});
