/** A started action without a result in time becomes `unknown`, and a person settles it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: open
rules:
  - { name: go, operation: go, effect: allow }
limits:
  - { name: two, tool: t, operation: go, per: agent, count: 2, window: 24h }
`;
const MINUTE = 60_000;
const SETTLEMENT = { success: false, reason: "the provider has no such charge" };

let service: Service;
let probe: string;
let n = 0;
before(async () => {
  service = await startService({ policy: POLICY, pluginOptions: { actions: { unknown_after_minutes: 10 } } });
  const body = { name: "probe", scopes: ["actions:settle", "actions:read"] };
  probe = (await service.call("POST", "/v1/api-keys", { key: service.admin, body })).body.key;
});
// Audits the store, too.
after(() => service.close());

const post = (id: string, verb: string, body: object = {}, key = service.agent): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/${verb}`, { key, body });
const statusOf = async (id: string): Promise<string> => (await service.call("GET", `/v1/actions/${id}`)).body.status;
const submit = (agent_id: string): Promise<Answer> =>
  service.call("POST", "/v1/actions", { body: { agent_id, tool: "t", operation: "go", params: { n: ++n } } });

async function started(agent = `bot-${++n}`): Promise<string> {
  const { id } = (await submit(agent)).body;
  assert.equal((await post(id, "start", { attempt: "a-start-of-its-own.1" })).status, 200);
  return id;
}

/** The background task runs at a start of the service. */
async function passTime(ms: number): Promise<void> {
  service.clock.now += ms;
  await service.restart();
}

async function unknown(agent?: string): Promise<string> {
  const id = await started(agent);
  await passTime(11 * MINUTE);
  await until("the outcome is unknown", async () => (await statusOf(id)) === "unknown");
  return id;
}

describe("an action without a result", () => {
  test("is executing until its time limit and then unknown, with an entry that names no one", async () => {
    const early = await started();
    await passTime(5 * MINUTE);
    const late = await started();
    await passTime(6 * MINUTE);
    await until("the outcome is unknown", async () => (await statusOf(early)) === "unknown");
    assert.equal(await statusOf(late), "executing");
    const { events } = (await service.call("GET", `/v1/actions/${early}/events`, { key: service.admin })).body;
    const { entry } = events.at(-1);
    assert.deepEqual([entry.type, entry.phase, entry.by, entry.status], ["execution", "no_result", null, "unknown"]);
    const { actions } = (await service.call("GET", "/v1/actions?status=unknown", { key: service.admin })).body;
    assert.deepEqual(
      actions.map(({ id }: Answer["body"]) => id),
      [early],
    );
  });

  test("counts against limits while its outcome is unknown", async () => {
    const agent = `bot-${++n}`;
    await started(agent);
    await unknown(agent);
    assert.equal((await submit(agent)).body.status, "denied");
  });

  test("accepts a late result from the key that started it, once", async () => {
    const id = await unknown();
    const result = { success: true, attempt: "a-start-of-its-own.1" };
    assert.equal((await post(id, "result", result)).body.status, "succeeded");
    assert.equal((await post(id, "result", result)).status, 200);
    assert.equal((await post(id, "settle", SETTLEMENT, probe)).body.code, "OUTCOME_NOT_UNKNOWN");
    assert.equal(await statusOf(id), "succeeded");
  });

  test("is settled once, by a key with the scope, which the entry names with its reason", async () => {
    const id = await unknown();
    for (const [key, status] of [
      [service.agent, 403],
      [probe, 200],
      [probe, 409],
    ] as const)
      assert.equal((await post(id, "settle", SETTLEMENT, key)).status, status);
    const action = (await service.call("GET", `/v1/actions/${id}`, { key: probe })).body;
    assert.deepEqual(
      [action.status, action.result],
      ["failed", { success: false, error: SETTLEMENT.reason, meta: {} }],
    );
    const { events } = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body;
    const { entry } = events.at(-1);
    assert.deepEqual([entry.phase, entry.comment, entry.success], ["result", SETTLEMENT.reason, false]);
    assert.match(entry.by.principal, /^key:/);
    // The key that started it is notified that it is settled.
    assert.equal((await post(id, "result", { success: true })).body.code, "ACTION_NOT_STARTED");
  });

  test("is not settled while it executes, without a reason, or by a key that cannot see it", async () => {
    const id = await started();
    assert.equal((await post(id, "settle", SETTLEMENT, probe)).body.code, "OUTCOME_NOT_UNKNOWN");
    assert.equal((await post(id, "settle", { success: true }, probe)).status, 422);
    const body = { name: "blind", scopes: ["actions:settle"], agent_id: "somebody-else" };
    const made = await service.call("POST", "/v1/api-keys", { key: service.admin, body });
    if (made.status === 201) assert.equal((await post(id, "settle", SETTLEMENT, made.body.key)).status, 404);
    else assert.equal(made.status, 422);
    assert.equal(await statusOf(id), "executing");
  });

  test("is not erased within a day of its start, and has no later entry once it is", needs("retention"), async () => {
    const id = await unknown();
    const reason = { reason: "asked to" };
    assert.equal((await post(id, "erase", reason, service.admin)).status, 409);
    service.clock.now += 25 * 60 * MINUTE;
    assert.equal((await post(id, "erase", reason, service.admin)).status, 200);
    assert.equal((await post(id, "settle", SETTLEMENT, probe)).body.code, "ACTION_ERASED");
    assert.equal((await post(id, "result", { success: true })).body.code, "ACTION_ERASED");
  });
});
