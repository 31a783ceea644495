/**
 * A grant is the vote of its grantor: it covers an action only while the grantor could approve that action.
 * @needs users
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { invite, startPeople, type Person } from "../../support/people.ts";
import { rawSqlite, type RawStore, type RawTable } from "../../support/raw-store.ts";
import { makeKey, type Answer, type Service, person } from "../../support/service.ts";

const GRANTS = "grants: { for: 8h, count: 50 }";
const POLICY = `policy: work
rules:
  - { name: deploy, tool: ci, operation: deploy, effect: require_approval, approval: { ${GRANTS} } }
  - { name: payout, tool: bank, operation: payout, effect: require_approval, approval: { ${GRANTS}, approvers: [{ group: finance }] } }
  - { name: apart, tool: bank, operation: apart, effect: require_approval, approval: { ${GRANTS}, exclude_requester_groups: true } }
  - { name: own, tool: own, operation: do, effect: require_approval, approval: { ${GRANTS}, mode: self_confirm } }
---
policy: extra
rules:
  - { name: legal, tool: bank, operation: payout, when: has(params.legal), effect: require_approval, approval: { ${GRANTS}, approvers: [{ group: legal }] } }
`;

let service: Service;
let raw: RawStore;
let ann: string;
let leo: string;
let n = 0;

before(async () => {
  let path = "";
  service = await startPeople({
    policy: POLICY,
    broken: true,
    change(config) {
      config.approvals.trust_key_makers = true;
      config.groups = {
        finance: { members: [person("ann"), person("leo")] },
        legal: { members: [person("leo")] },
        ops: { members: [person("ann"), person("requester")] },
        near: { members: [person("tim")], agents: ["near-*"] },
      };
    },
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path });
    },
  });
  raw = await rawSqlite(path);
  ann = (await makeKey(service, { name: "ann", preset: "approver", owner: "ann" })).key;
  leo = (await makeKey(service, { name: "leo", preset: "approver", owner: "leo" })).key;
});
after(async () => {
  await raw.close();
  await service.close();
});

const freshAgent = (): string => `bot-${++n}`;
const submit = (body: object, key = service.agent): Promise<Answer> =>
  service.call("POST", "/v1/actions", { key, body: { tool: "ci", operation: "deploy", params: { n: ++n }, ...body } });
const statusOf = async (body: object, key = service.agent): Promise<string> => (await submit(body, key)).body.status;
const terms = (body: object) => ({ tool: "ci", operation: "deploy", for: "1h", count: 10, ...body });
async function granted(body: object, key: string): Promise<string> {
  const answer = await service.call("POST", "/v1/grants", { key, body: terms(body) });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.id;
}
const faults = async (): Promise<string> => (await auditStore(service.storage)).faults.join("\n");

test("if the rules name groups, the grantor must be in all of them", async () => {
  const agent_id = freshAgent();
  const payout = { agent_id, tool: "bank", operation: "payout" };
  await granted(payout, ann);
  assert.equal(await statusOf({ ...payout, params: { a: 1 } }), "allowed");
  assert.equal(await statusOf({ ...payout, params: { legal: 1 } }), "pending_approval");
  await granted(payout, leo);
  assert.equal(await statusOf({ ...payout, params: { legal: 2 } }), "allowed", "leo is in both groups");
});

test("if the requester's groups are excluded, a grant by a member covers nothing", async () => {
  const agent_id = freshAgent();
  const apart = { agent_id, tool: "bank", operation: "apart" };
  const { key } = await makeKey(service, { name: "r", preset: "agent", agent_id, owner: "requester" });
  await granted(apart, ann);
  assert.equal(await statusOf(apart, key), "pending_approval");
  await granted(apart, leo);
  assert.equal(await statusOf(apart, key), "allowed");
});

test("a user's grant covers nothing after the user loses the role, and ends with the user", async () => {
  const agent_id = freshAgent();
  const person: Person = await invite(service, { name: "Uma", roles: ["approver"] });
  const created = await person.call("POST", "/v1/grants", terms({ agent_id }));
  assert.equal(created.status, 201, JSON.stringify(created.body));
  assert.equal(await statusOf({ agent_id }), "allowed");
  const setRoles = (roles: string[]) =>
    service.call("PATCH", `/v1/users/${person.id}`, { key: service.admin, body: { roles } });
  assert.equal((await setRoles(["viewer"])).status, 200);
  assert.equal(await statusOf({ agent_id }), "pending_approval");
  assert.equal((await setRoles(["approver"])).status, 200);
  assert.equal(await statusOf({ agent_id }), "allowed");
  const end = await service.call("POST", `/v1/users/${person.id}/end`, {
    key: service.admin,
    body: { reason: "left" },
  });
  assert.equal(end.status, 200, JSON.stringify(end.body));
  assert.equal(await statusOf({ agent_id }), "pending_approval");
  const grant = await service.call("GET", `/v1/grants/${created.body.id}`, { key: service.admin });
  assert.equal(grant.body.ended.cause, "revoked", JSON.stringify(grant.body));
  const resume = await service.call("POST", `/v1/users/${person.id}/resume`, { key: service.admin });
  assert.equal(resume.status, 200, JSON.stringify(resume.body));
  assert.equal(await statusOf({ agent_id }), "pending_approval", "the grant does not come back with the user");
});

test("a grantor who sees only some agents cannot grant for others", async () => {
  const tim = (await makeKey(service, { name: "tim", preset: "approver", owner: "tim" })).key;
  const answer = await service.call("POST", "/v1/grants", { key: tim, body: terms({ agent_id: "far-1" }) });
  assert.deepEqual([answer.status, answer.body.code], [403, "APPROVER_NOT_ELIGIBLE"]);
  const id = await granted({ agent_id: "near-1" }, tim);
  assert.equal(await statusOf({ agent_id: "near-1" }), "allowed");
  const hidden = await granted({ agent_id: freshAgent() }, ann);
  const revoke = (grant: string) => service.call("POST", `/v1/grants/${grant}/revoke`, { key: tim, body: {} });
  assert.deepEqual([(await revoke(hidden)).body.code, (await revoke(id)).status], ["GRANT_NOT_FOUND", 200]);
});

test("self_confirm does not let a person grant to their own agent with a key or a session", async () => {
  const agent_id = freshAgent();
  const { key } = await makeKey(service, { name: "a", preset: "agent", agent_id, owner: "ann" });
  const own = { agent_id, tool: "own", operation: "do" };
  const answer = await service.call("POST", "/v1/grants", { key: ann, body: terms(own) });
  assert.deepEqual([answer.status, answer.body.code], [403, "SELF_APPROVAL"]);
  await granted(own, leo);
  assert.equal(await statusOf(own, key), "allowed", "someone else can");
});

test("an approval under a grant is evaluated again at the start if the policies changed", needs("replay"), async () => {
  const agent_id = freshAgent();
  await granted({ agent_id }, ann);
  const { body: action } = await submit({ agent_id });
  const candidate = { policy: "strict", rules: [{ name: "r", tool: "ci", effect: "require_approval" }] };
  const backtest = await service.call("POST", "/v1/replay", {
    key: service.admin,
    body: { action_id: action.id, policy: candidate },
  });
  assert.equal(backtest.status, 200, JSON.stringify(backtest.body));
  assert.deepEqual(
    [backtest.body.equal, backtest.body.now.changed, backtest.body.now.decision.effect],
    [true, true, "require_approval"],
  );
  const stored = await service.call("POST", "/v1/policies", { key: service.admin, body: candidate });
  const path = `/v1/policies/${stored.body.id as string}`;
  await service.call("POST", `${path}/activate`, { key: service.admin, body: { version: 1 } });
  const start = await service.call("POST", `/v1/actions/${action.id}/start`, { body: {} });
  assert.equal(start.body.code, "MORE_APPROVALS_NEEDED");
  await service.call("POST", `${path}/deactivate`, { key: service.admin });
});

test("a use that was removed from the store is missed by the next decision and by the audit, and the service finds a use that was moved to another grant", async () => {
  const agent_id = freshAgent();
  const id = await granted({ agent_id, count: 5, sum: { of: "2", at_most: 100 } }, ann);
  const { body: first } = await submit({ agent_id });
  const { body: second } = await submit({ agent_id });
  assert.equal(await faults(), "");
  const uses = raw.tables.find(({ name }) => name === "limit_uses") as RawTable;
  const row = (await raw.rows(uses)).find(({ action_id }) => action_id === first.id);
  assert.ok(row !== undefined);
  await raw.remove(uses, row);
  assert.match(await faults(), new RegExp(`its use of the limit "uses" of "grant:${id}" is not in the store`));
  assert.equal((await submit({ agent_id })).body.code, "STORE_ALTERED");
  await raw.insert(uses, row);
  assert.equal((await submit({ agent_id })).body.status, "allowed");
  const actions = raw.tables.find(({ name }) => name === "actions") as RawTable;
  const action = (await raw.rows(actions)).find((each) => each["id"] === second.id);
  assert.ok(action !== undefined);
  await raw.set(actions, action, "allowed_by", null);
  const start = await service.call("POST", `/v1/actions/${second.id}/start`, { body: {} });
  assert.equal(start.body.code, "RECORD_ALTERED");
  assert.match(await faults(), /allowed_by/);
});
