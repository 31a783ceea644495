/** Attempts to get more out of delegations and emergency approvals than they allow. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDelegationAuditor } from "../../../plugins/users/delegation-audit.ts";
import { delegationState } from "../../../src/domain/delegations.ts";
import { NO_USERS } from "../../../src/domain/users.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, type Answer, type Service, addPerson } from "../../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: finance, tool: finance, effect: require_approval, approval: { approvers: [{ group: finance, count: 2 }] } }
  - { name: outside, tool: outside, effect: require_approval, approval: { exclude_requester_groups: true } }
`;

let service: Service;
let agent: string;
let ann: Person;
let ben: Person;
let n = 0;
before(async () => {
  service = await startPeople({ policy: POLICY });
  for (const name of ["ada", "robot"]) await addUser(service, { name });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  ann = await invite(service, { name: "Ann", roles: ["approver", "break_glass"], groups: ["finance"] });
  ben = await invite(service, { name: "Ben", roles: ["approver"], groups: ["support"] });
});
after(() => service.close());

const submit = async (tool = "finance", key = agent): Promise<string> =>
  (
    await service.call("POST", "/v1/actions", {
      key,
      body: { agent_id: "bot", tool, operation: "x", params: { n: ++n } },
    })
  ).body.id;
const tokenOf = async (id: string, who: Person): Promise<string> =>
  (await who.call("GET", `/v1/actions/${id}`)).body.approval_token;
const send = (id: string, who: Person, token: string, more: object = {}): Promise<Answer> =>
  who.call("POST", `/v1/actions/${id}/approval`, { token, approve: true, ...more });
const delegate = async (from: Person, to: Person): Promise<string> => {
  const until = new Date(service.runtime.host.clock() + 3_600_000).toISOString();
  const { body } = await from.call("POST", `/v1/users/${from.id}/delegations`, { to: to.id, until });
  return body.id;
};
const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];

test("delegate and delegator who vote at the same moment are one person", async () => {
  const delegation = await delegate(ann, ben);
  for (let round = 0; round < 5; round++) {
    const id = await submit();
    const tokens = [await tokenOf(id, ann), await tokenOf(id, ben)];
    const answers = await Promise.all([send(id, ann, tokens[0]!), send(id, ben, tokens[1]!)]);
    assert.equal(answers.filter(({ status }) => status === 200).length, 1, JSON.stringify(answers.map(said)));
    assert.equal((await ann.call("GET", `/v1/actions/${id}`)).body.status, "pending_approval");
  }
  await ann.call("POST", `/v1/delegations/${delegation}/revoke`, {});
});

test("a vote that was prepared before a delegation ended or a user was deactivated does not count afterwards", async () => {
  const delegation = await delegate(ann, ben);
  const id = await submit();
  const token = await tokenOf(id, ben);
  await ann.call("POST", `/v1/delegations/${delegation}/revoke`, {});
  assert.deepEqual(said(await send(id, ben, token)), [403, "APPROVER_NOT_ELIGIBLE"]);
  const eve = await invite(service, { name: "Eve", roles: ["approver"], groups: ["finance"] });
  await delegate(eve, ben);
  const again = await tokenOf(id, ben);
  const end = service.call("POST", `/v1/users/${eve.id}/end`, { key: service.admin, body: {} });
  const [, late] = [await end, await send(id, ben, again)];
  assert.deepEqual(said(late), [403, "APPROVER_NOT_ELIGIBLE"]);
});

test("a group of a user who made the submitting key is a group of the requester", async () => {
  await service.call("PATCH", `/v1/users/${ben.id}`, {
    key: service.admin,
    body: { roles: ["approver", "key_manager"] },
  });
  const body = { name: "bens agent", owner: await addPerson(service, "robot"), preset: "agent", agent_id: "bot" };
  const made = await ben.call("POST", "/v1/api-keys", body);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const cora = await invite(service, { name: "Cora", roles: ["approver"], groups: ["support"] });
  const id = await submit("outside", made.body.key);
  const { blocked } = (await cora.call("GET", `/v1/actions/${id}`)).body.approval_terms;
  assert.equal(blocked.code, "APPROVER_NOT_ELIGIBLE");
  assert.deepEqual(said(await send(id, cora, await tokenOf(id, cora))), [403, "APPROVER_NOT_ELIGIBLE"]);
});

test(
  "an emergency approval is used once, and its review is closed once, whoever is first",
  needs("break-glass"),
  async () => {
    const id = await submit();
    const token = await tokenOf(id, ann);
    const more = { break_glass: true, reason: "down" };
    const answers = await Promise.all([send(id, ann, token, more), send(id, ann, token, more)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
    const open = (await ben.call("GET", "/v1/break-glass?status=open")).body.break_glass;
    assert.equal(open.length, 1);
    const path = `/v1/break-glass/${open[0].id}/review`;
    const reviews = await Promise.all([
      ben.call("POST", path, { comment: "fine" }),
      service.call("POST", path, { key: service.admin, body: { comment: "fine" } }),
      ann.call("POST", path, { comment: "fine" }),
    ]);
    assert.equal(reviews.filter(({ status }) => status === 200).length, 1);
    assert.equal(reviews[2]?.status === 200, false);
  },
);

test("the body names neither the delegator nor the delegation", async () => {
  const id = await submit();
  const token = await tokenOf(id, ben);
  for (const more of [{ on_behalf_of: `user:${ann.id}` }, { delegation: { id: "x", from: `user:${ann.id}` } }])
    assert.deepEqual(said(await send(id, ben, token, more)), [422, "VALIDATION_FAILED"]);
});

test("the audit finds a vote that was forged with a delegation that does not cover the action", async () => {
  const forging = await startPeople({ policy: POLICY, broken: true });
  try {
    const from = await invite(forging, { name: "Ann", roles: ["approver"], groups: ["finance"] });
    const to = await invite(forging, { name: "Ben", roles: ["approver"] });
    const until = new Date(forging.runtime.host.clock() + 3_600_000).toISOString();
    const delegateFor = async (more: object): Promise<string> =>
      (await from.call("POST", `/v1/users/${from.id}/delegations`, { to: to.id, until, ...more })).body.id;
    const request = (): object => ({ agent_id: "bot", tool: "finance", operation: "x", params: { n: ++n } });
    const ask = async (): Promise<string> => (await forging.call("POST", "/v1/actions", { body: request() })).body.id;
    const entriesOf = async (id: string): Promise<any[]> =>
      (await forging.call("GET", `/v1/actions/${id}/events`, { key: forging.admin })).body.events;
    const covering = await delegateFor({ agents: ["bot*"], tools: ["FIN*"] });
    const genuine = await ask();
    const { approval_token } = (await to.call("GET", `/v1/actions/${genuine}`)).body;
    const voted = await to.call("POST", `/v1/actions/${genuine}/approval`, { token: approval_token, approve: true });
    assert.equal(voted.status, 200, JSON.stringify(voted.body));
    const [, { entry }] = await entriesOf(genuine);
    assert.equal(entry.delegation.id, covering);

    // A process that holds the log's key, and does not check what a delegation covers.
    const forge = async (delegation: string): Promise<[string, number]> => {
      const id = await ask();
      const [{ entry: decision }] = await entriesOf(id);
      const { commitment } = decision;
      const seq = await forging.runtime.host.ledger.transact(async (tx) => {
        const row = (await tx.action(id)) ?? assert.fail("there is no action");
        const at = new Date(tx.now).toISOString();
        const used = { id: delegation, from: `user:${from.id}` };
        const vote = { ...entry, action_id: id, at, commitment, delegation: used };
        return tx.recordChange(row, null, vote).seq;
      });
      return [id, seq];
    };
    await forge(covering);
    assert.deepEqual((await auditStore(forging.storage)).faults, [], "the forged entries are otherwise genuine");
    const expected: string[] = [];
    for (const limit of [{ tools: ["crm"] }, { agents: ["other"] }]) {
      const delegation = await delegateFor(limit);
      const [id, seq] = await forge(delegation);
      const what = `the vote of entry ${seq} uses the delegation ${delegation}, which does not cover finance of bot`;
      expected.push(`action ${id}: ${what}`);
    }
    assert.deepEqual((await auditStore(forging.storage)).faults.sort(), expected.sort());
  } finally {
    await forging.close();
  }
});

test("the audit names a vote on behalf of a user without a delegation", () => {
  const by = { key_id: "u", principal: "user:u", agent_id: null, owner: "user:u" };
  const vote = { type: "approval", delegation: { id: "d", from: "user:x" }, action_id: "a", by };
  const state = (fold: unknown) => (fold === delegationState ? delegationState.initial : NO_USERS);
  assert.throws(
    () => createDelegationAuditor().check?.(vote as never, { state } as never),
    /the delegation d, which does not exist/,
  );
});
