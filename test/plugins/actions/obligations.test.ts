/**
 * Obligations of rules in the service: what the submitter may run, what approvers see and sign, and what the record proves.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { submitAndStart, createAssent, govern } from "../../../clients/typescript/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { addUser, startPeople } from "../../support/people.ts";
import { makeKey, plainVotes, type Answer, type Service } from "../../support/service.ts";

const POLICY = `
policy: payments
rules:
  - { name: never, tool: pay, when: 'params.amount > 900', effect: deny }
  - name: large
    tool: pay
    operation: ask
    effect: require_approval
    approval: { rejection_holds: 1h, editable: [params.amount] }
    obligations: { clamp: { params.amount: { max: 500 } } }
  - { name: capped, tool: pay, effect: allow, obligations: { set: { params.currency: EUR }, clamp: { params.amount: { max: 500 } } } }
limits:
  - { name: daily, tool: pay, operation: limited, sum: params.amount, at_most: 900, window: 24h }
`;

let service: Service;
let agent: string;
let bob: string;
before(async () => {
  service = await startPeople({ policy: POLICY, change: plainVotes });
  for (const name of ["ada", "bob"]) await addUser(service, { name });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  bob = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
});
after(() => service.close());

const post = (path: string, key: string, body: object): Promise<Answer> => service.call("POST", path, { key, body });
let n = 0;
const requestOf = (amount: number, operation = "once") => ({
  agent_id: "bot",
  tool: "pay",
  operation,
  params: { amount, currency: "USD", id: ++n },
});
const submit = async (amount: number, operation?: string): Promise<any> =>
  (await post("/v1/actions", agent, requestOf(amount, operation))).body;
const audited = async (): Promise<string[]> => (await auditStore(service.storage)).faults;

test("the submitter receives the changed request, and can start only this one", needs("replay"), async () => {
  const action = await submit(800);
  const { id, request_hash, proposed } = action;
  assert.deepEqual([action.status, action.outcome], ["allowed", "ABSTAIN"]);
  assert.deepEqual(action.params, { amount: 500, currency: "EUR", id: proposed.params.id });
  assert.deepEqual([proposed.params.amount, proposed.params.currency, proposed.edited_by], [800, "USD", "policies"]);
  for (const hash of [undefined, proposed.request_hash]) {
    const refused = await post(`/v1/actions/${id}/start`, agent, { request_hash: hash });
    assert.equal(refused.body.code, "REQUEST_EDITED");
    if (hash === undefined) assert.match(refused.body.detail, /run `params` of its response/);
  }
  const { permit } = (await post(`/v1/actions/${id}/permit`, agent, {})).body;
  const claims = JSON.parse(Buffer.from(permit.split(".")[1], "base64url").toString());
  assert.equal(claims.request_hash, request_hash);
  assert.equal((await post(`/v1/actions/${id}/start`, agent, { request_hash, permit })).body.status, "executing");
  const { body } = await post("/v1/replay", service.admin, { action_id: id });
  assert.equal(body.equal, true, JSON.stringify(body));
  const [redecision] = body.redecisions;
  const now = await post("/v1/replay", service.admin, { hash: redecision.hash, policy_set: "current" });
  assert.equal(now.body.now.changed, false, "a later decision was about the changed request");
  assert.deepEqual(await audited(), []);
});

test("a request that satisfies the obligations is not changed", async () => {
  const { body } = await post("/v1/actions", agent, { ...requestOf(20), params: { amount: 20, currency: "EUR" } });
  assert.deepEqual([body.proposed, body.outcome], [null, "EXECUTE"]);
  assert.equal((await post(`/v1/actions/${body.id}/start`, agent, {})).body.status, "executing");
});

test("approvers see both requests, and their approval binds the changed one", needs("edits"), async () => {
  const { id } = await submit(800, "ask");
  const { body: shown } = await service.call("GET", `/v1/actions/${id}`, { key: bob });
  assert.deepEqual([shown.params.amount, shown.proposed.params.amount], [500, 800]);
  assert.deepEqual(shown.approval_terms.editable, []);
  const changes = { "params.amount": 90 };
  const edited = await post(`/v1/actions/${id}/edit`, bob, { token: shown.approval_token, changes });
  assert.equal(edited.body.code, "EDIT_NOT_ALLOWED");
  const vote = { token: shown.approval_token, approve: true };
  assert.equal((await post(`/v1/actions/${id}/approval`, bob, vote)).body.status, "approved");
  assert.equal((await post(`/v1/actions/${id}/start`, agent, {})).body.code, "REQUEST_EDITED");
  const started = await post(`/v1/actions/${id}/start`, agent, { request_hash: shown.request_hash });
  assert.equal(started.body.status, "executing");
  assert.deepEqual(await audited(), []);
});

test("a rejection denies the submitted and the changed request", async () => {
  const rejected = await submit(700, "ask");
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${rejected.id}`, { key: bob })).body;
  await post(`/v1/actions/${rejected.id}/approval`, bob, { token, approve: false });
  const { id } = rejected.params;
  for (const amount of [700, 500, 600]) {
    const again = { ...requestOf(amount, "ask"), params: { amount, currency: "USD", id } };
    const { body } = await post("/v1/actions", agent, again);
    assert.deepEqual([amount, body.status, body.denied_by], [amount, "denied", "earlier_rejection"]);
    assert.equal(body.proposed, null, "nothing may run");
  }
  assert.deepEqual(await audited(), []);
});

test("limits count the changed request, and a denied request is recorded as submitted", async () => {
  assert.equal((await submit(800, "limited")).params.amount, 500);
  assert.equal((await submit(400, "limited")).status, "allowed", "500 and 400 are within 900");
  const denied = await submit(800, "limited");
  assert.deepEqual([denied.status, denied.params.amount, denied.proposed], ["denied", 800, null]);
  assert.deepEqual(await audited(), []);
});

test("clients that apply obligations run the changed parameters; other clients, and gates, do not run the action", async () => {
  const assent = createAssent({
    url: "http://test",
    apiKey: agent,
    fetch: (url, init) => Promise.resolve(service.runtime.fetch(new Request(url as string, init))),
  });
  const ran: unknown[] = [];
  const options = { tool: "pay", operation: "once", agent: "bot", assent };
  const pay = govern((params: { amount: number; currency: string }) => ran.push(params), options);
  await pay({ amount: 800, currency: "USD" });
  assert.deepEqual(ran, [{ amount: 500, currency: "EUR" }]);
  const refused = await submitAndStart(assent, requestOf(800));
  assert.deepEqual([refused.state, refused.outcome], ["refused", "edited"]);
  assert.match(refused.message, /allowed with other parameters: amount = 500, currency = "EUR"/);
  for (const query of ["", "?record=true"]) {
    const { body } = await post(`/v1/gate/decide${query}`, agent, requestOf(800));
    assert.deepEqual([body.outcome, body.decision, body.reason_code], ["ABSTAIN", null, "REQUEST_CHANGED"]);
  }
});

test("an action whose obligations have become stricter does not start", needs("replay"), async () => {
  const { id, request_hash } = await submit(800, "later");
  const obligations = { clamp: { "params.amount": { max: 400 } } };
  const rules = [{ name: "tighter", tool: "pay", operation: "later", effect: "allow", obligations }];
  const activated = await post("/v1/policies?activate=true", service.admin, { policy: "tighter", rules });
  assert.equal(activated.status, 201, JSON.stringify(activated.body));
  const { body } = await post(`/v1/actions/${id}/start`, agent, { request_hash });
  assert.equal(body.code, "NO_LONGER_ALLOWED");
  assert.match(body.detail, /the request may no longer change/);
  const { body: replayed } = await post("/v1/replay", service.admin, { action_id: id });
  assert.equal(replayed.equal, true, JSON.stringify(replayed));
  assert.deepEqual(await audited(), []);
});

test("an effective request that someone altered or removed in the store does not start", async () => {
  const { id, request_hash } = await submit(800);
  const row = (await service.storage.action(id))!;
  for (const effective of [row.effective!.replace('"amount":500', '"amount":501'), null]) {
    const change = { status: "allowed", effective, updated_at: row.updated_at } as const;
    await service.storage.write((tx) => tx.updateAction(id, { status: "allowed" }, change));
    assert.equal((await post(`/v1/actions/${id}/start`, agent, { request_hash })).body.code, "RECORD_ALTERED");
    assert.match((await audited()).join("\n"), /its effective request does not match/);
  }
  await service.storage.write((tx) =>
    tx.updateAction(
      id,
      { status: "allowed" },
      { status: "allowed", effective: row.effective, updated_at: row.updated_at },
    ),
  );
  assert.deepEqual(await audited(), []);
});
