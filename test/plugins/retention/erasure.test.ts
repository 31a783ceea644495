/** Erasing requests and results deletes them permanently. The ledger, its proofs and all counts still work. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { CoreHost } from "../../../src/contract/core-host.ts";
import { defineCorePlugin } from "../../../src/core.ts";
import { auditStore, memoryStorage, withFaults, type FaultMode, type Faults } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { waitForSignature, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules:
  - { name: pay, tool: pay, effect: allow }
  - { name: ask, tool: ask, effect: require_approval, approval: { expires_in: 1h } }
limits: [{ name: sum, tool: pay, per: params.customer, sum: params.amount, at_most: 100, window: 1h }]
`;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe("erasure", () => {
  let service: Service;
  let auditor: string;
  before(async () => {
    service = await startService({ policy: POLICY });
    const { body } = await call("POST", "/v1/api-keys", { name: "auditor", preset: "auditor" });
    auditor = body.key as string;
  });
  after(() => service.close());

  const call = (method: string, path: string, body?: unknown, key = service.admin): Promise<Answer> =>
    service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
  const submit = async (more: object = {}, headers: Record<string, string> = {}): Promise<Answer["body"]> => {
    const body = { agent_id: "bot", tool: "pay", operation: "x", params: { customer: "Anna", amount: 7 }, ...more };
    return (await service.call("POST", "/v1/actions", { key: service.agent, body, headers })).body;
  };
  const run = async (id: string, meta: object): Promise<void> => {
    await call("POST", `/v1/actions/${id}/start`, {}, service.agent);
    assert.equal((await call("POST", `/v1/actions/${id}/result`, { success: true, meta }, service.agent)).status, 200);
  };
  const erase = (id: string, key = service.admin): Promise<Answer> =>
    call("POST", `/v1/actions/${id}/erase`, { reason: "ticket 7" }, key);
  const refused = ({ status, body }: Answer): [number, string] => [status, body.code];

  test(
    "an erasure deletes the request and the result, is reported everywhere, and leaves the decision provable",
    needs("provenance", "replay"),
    async () => {
      const asked = await submit({ context: { ticket: "about Anna" } });
      await run(asked.id, { told: "Anna" });
      const { status, body } = await erase(asked.id);
      assert.deepEqual(
        [status, body.status, body.params, body.context, body.result, body.request_hash, body.permit],
        [200, "succeeded", {}, {}, null, null, null],
      );
      assert.ok(Date.parse(body.erased_at) > 0);
      assert.deepEqual((await call("GET", `/v1/actions/${asked.id}`)).body, body);
      const listed = (await call("GET", "/v1/actions?limit=1")).body.actions[0];
      assert.deepEqual([listed.id, listed.erased_at], [asked.id, body.erased_at]);

      const { events } = (await call("GET", `/v1/actions/${asked.id}/events`)).body;
      const { type, entry } = events.at(-1);
      assert.deepEqual(
        [type, entry.cause, entry.reason, entry.agent_id, entry.commitment],
        ["erasure", "asked", "ticket 7", "bot", events[0].entry.commitment],
      );
      assert.ok(entry.by.key_id !== undefined && !JSON.stringify(events).includes("Anna"));

      for (const hash of [asked.decision_hash, events.at(-1).hash])
        assert.equal((await call("GET", `/v1/provenance/${hash}/proof`)).status, 200);
      assert.deepEqual(refused(await call("POST", "/v1/replay", { action_id: asked.id }, auditor)), [
        410,
        "ACTION_ERASED",
      ]);
      const row = await service.storage.action(asked.id);
      assert.ok(!/Anna|ticket/.test(JSON.stringify(row)));
      const { erased, faults } = await auditStore(service.storage);
      assert.deepEqual([erased, faults], [1, []]);
      assert.deepEqual([row?.request, row?.request_hash, row?.salt, row?.past, row?.result], ["", "", "", null, null]);
    },
  );

  test(
    "a backtest reports how many actions it could not read, and analytics are unchanged",
    needs("analytics", "replay"),
    async () => {
      const totals = async () => (await call("GET", "/v1/analytics")).body.totals;
      const backtest = async () => (await call("POST", "/v1/replay", { policy_set: "current", limit: 1000 })).body;
      const { id } = await submit({ tool: "nothing" });
      const [counted, earlier] = [await totals(), await backtest()];
      await erase(id);
      const later = await backtest();
      assert.deepEqual(
        [later.evaluated, later.erased, later.flipped],
        [earlier.evaluated - 1, earlier.erased + 1, earlier.flipped],
      );
      assert.deepEqual(await totals(), counted);
    },
  );

  test("a second erasure changes nothing", async () => {
    const { id } = await submit({ tool: "nothing" });
    const first = await erase(id);
    const { size } = await service.storage.head();
    assert.deepEqual((await erase(id)).body, first.body);
    assert.equal((await service.storage.head()).size, size);
    const many = await Promise.all(Array.from({ length: 5 }, () => erase(id)));
    assert.deepEqual([...new Set(many.map((answer) => answer.body.erased_at))], [first.body.erased_at]);
  });

  test("actions that are pending, startable or executing are not erased", async () => {
    const pending = await submit({ tool: "ask" });
    assert.deepEqual(refused(await erase(pending.id)), [409, "ACTION_OPEN"]);
    await call("POST", `/v1/actions/${pending.id}/cancel`, {}, service.agent);
    assert.equal((await erase(pending.id)).status, 200);

    const [allowed, running] = [await submit(), await submit()];
    assert.deepEqual(refused(await erase(allowed.id)), [409, "ACTION_OPEN"]);
    await call("POST", `/v1/actions/${running.id}/start`, {}, service.agent);
    assert.deepEqual(refused(await erase(running.id)), [409, "ACTION_OPEN"]);
    service.clock.now += DAY + HOUR;
    assert.equal((await erase(allowed.id)).status, 200);
    assert.equal((await erase(running.id)).status, 200);
    const start = await call("POST", `/v1/actions/${allowed.id}/start`, {}, service.agent);
    assert.deepEqual(refused(start), [410, "ACTION_ERASED"]);
    const report = await call("POST", `/v1/actions/${running.id}/result`, { success: true }, service.agent);
    assert.deepEqual(refused(report), [410, "ACTION_ERASED"]);
    service.clock.now = 0;
  });

  test("of a concurrent vote and erasure one succeeds, and an allowed action is not erased", async () => {
    const { body } = await call("POST", "/v1/api-keys", { name: "approver", preset: "approver" });
    for (let i = 0; i < 10; i++) {
      const { id } = await submit({ tool: "ask", params: { i } });
      const token = (await call("GET", `/v1/actions/${id}`, undefined, body.key)).body.approval_token as string;
      const vote = call("POST", `/v1/actions/${id}/approval`, { token, approve: i % 2 === 0 }, body.key);
      const [voted, erased] = await Promise.all([vote, erase(id)]);
      assert.equal(voted.status, 200);
      const row = await service.storage.action(id);
      assert.equal(row?.erased_at != null, erased.status === 200);
      if (i % 2 === 0) assert.deepEqual(refused(erased), [409, "ACTION_OPEN"]);
    }
  });

  test("a retry with the idempotency key of an erased action is rejected, and nothing is decided again", async () => {
    const headers = { "idempotency-key": "payment-1" };
    const first = await submit({ tool: "nothing" }, headers);
    assert.equal((await submit({ tool: "nothing" }, headers)).id, first.id);
    assert.equal((await submit({ tool: "other" }, headers)).code, "IDEMPOTENCY_CONFLICT");
    await erase(first.id);
    const { size } = await service.storage.head();
    assert.equal((await submit({ tool: "nothing" }, headers)).code, "ACTION_ERASED");
    assert.equal((await service.storage.head()).size, size);
    const known = await service.storage.idempotency(first.submitted_by, "POST /v1/actions", "payment-1");
    assert.equal(known?.body_hash, "", "nothing is left to try parameters against");
  });

  test("an erased action counts against a limit until the window ends", async () => {
    const pay = () => submit({ tool: "pay", params: { customer: "Cora", amount: 60 } });
    const first = await pay();
    await run(first.id, {});
    assert.equal((await erase(first.id)).status, 200);
    assert.equal((await pay()).reason_code, "LIMIT_EXCEEDED");
  });

  test("a key needs the scope to erase, and erases only what it can see", async () => {
    const { id } = await submit({ tool: "nothing" });
    assert.deepEqual(refused(await erase(id, auditor)), [403, "INSUFFICIENT_SCOPE"]);
    const key = async (name: string, agent_id: string): Promise<string> =>
      (await call("POST", "/v1/api-keys", { name, scopes: ["actions:erase"], agent_id })).body.key as string;
    assert.deepEqual(refused(await erase(id, await key("of another", "other"))), [404, "ACTION_NOT_FOUND"]);
    const { status, body } = await erase(id, await key("of the bot", "bot"));
    assert.equal(status, 200);
    assert.ok(body.erased_at !== null);
  });

  test("an erasure requires a reason", async () => {
    const { id } = await submit({ tool: "nothing" });
    for (const body of [{}, { reason: "" }, { reason: "x".repeat(501) }])
      assert.deepEqual(refused(await call("POST", `/v1/actions/${id}/erase`, body)), [422, "VALIDATION_FAILED"]);
    assert.equal((await service.storage.action(id))?.erased_at, null);
  });
});

test("an action that was altered in the store is kept as evidence", async () => {
  const hosts: CoreHost[] = [];
  const spy = defineCorePlugin({ name: "spy", setup: (host) => (hosts.push(host), {}) });
  const plugins = [{ plugin: spy, options: {}, origin: "test", core: true }];
  const service = await startService({ policy: POLICY, plugins, broken: true });
  try {
    const body = { agent_id: "bot", tool: "nothing", operation: "x", params: { customer: "Dora" } };
    const ids: string[] = [];
    for (let i = 0; i < 3; i++)
      ids.push((await service.call("POST", "/v1/actions", { key: service.agent, body })).body.id as string);
    await waitForSignature(service);
    await service.storage.write(async (tx) => {
      await tx.updateAction(
        ids[1] as string,
        { status: "denied" },
        // Malformed facts must not stop the search either.
        { status: "denied", reason: "other", updated_at: 1, past: `{"salt":"${"1".repeat(64)}","sources":{"a":1}}` },
      );
    });
    const one = await service.call("POST", `/v1/actions/${ids[1] as string}/erase`, {
      key: service.admin,
      body: { reason: "r" },
    });
    assert.deepEqual([one.status, one.body.code], [409, "RECORD_ALTERED"]);
    // What an unreadable action contains is unknown, so each search reports it.
    const other = await service.call("POST", "/v1/erasures", {
      key: service.admin,
      body: { value: "nobody", reason: "r", dry_run: false },
    });
    assert.deepEqual([other.body.matched, other.body.erased, other.body.altered], [1, 0, 1]);
    const all = await service.call("POST", "/v1/erasures", {
      key: service.admin,
      body: { value: "Dora", reason: "r", dry_run: false },
    });
    assert.deepEqual([all.body.matched, all.body.erased, all.body.altered], [3, 2, 1]);
    assert.ok((await service.storage.action(ids[1] as string))?.request.includes("Dora"));
  } finally {
    await service.close();
  }
});

test("a storage failure leaves an erasure complete and recorded, or undone; a repetition erases once", async () => {
  const modes: FaultMode[] = ["not-persisted", "persisted"];
  for (const operation of ["tx.eraseAction", "tx.append", "commit"])
    for (const mode of modes) {
      const storage = withFaults(memoryStorage());
      const faults: Faults = storage.faults;
      const service = await startService({ policy: POLICY, storage: () => storage });
      const name = `${operation} ${mode}`;
      try {
        const body = { agent_id: "bot", tool: "nothing", operation: "x", params: { customer: "Anna" } };
        const { id } = (await service.call("POST", "/v1/actions", { body })).body as { id: string };
        await waitForSignature(service);
        faults.failNext(operation, mode);
        const erase = (): Promise<Answer> =>
          service.call("POST", `/v1/actions/${id}/erase`, { key: service.admin, body: { reason: "r" } });
        assert.equal((await erase()).status, 503, name);
        faults.clear();
        const entries = async () => (await storage.entriesOfAction(id)).filter(({ type }) => type === "erasure").length;
        assert.equal((await storage.action(id))?.erased_at === null ? 0 : 1, await entries(), name);
        assert.equal((await erase()).status, 200, name);
        assert.equal(await entries(), 1, name);
      } finally {
        await service.close();
      }
    }
});
