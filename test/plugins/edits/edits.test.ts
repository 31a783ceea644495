/**
 * Requests that an approver changes: what may be changed, who approves it, what may run, and what the record proves.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { submitAndStart, createAssent, govern } from "../../../clients/typescript/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { addUser, invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, plainVotes, type Answer, type Service } from "../../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: never, tool: pay, when: 'params.amount > 900', effect: deny, reason: too much }
  - { name: twice, tool: pay, operation: twice, effect: require_approval, approval: { quorum: 2, editable: [params.amount] } }
  - { name: held, tool: pay, operation: held, effect: require_approval, approval: { rejection_holds: 1h, editable: [params.amount] } }
  - { name: small, tool: pay, when: 'params.amount < 10', effect: allow }
  - name: pay
    tool: pay
    effect: require_approval
    approval:
      editable:
        params.amount: { min: 1, max: 950 }
        params.to.name: { one_of: [anna, ben] }
        params.note: { max_length: 5 }
limits:
  - { name: daily, tool: pay, sum: params.amount, at_most: 1500, window: 24h, per: params.account }
`;

let service: Service;
let agent: string;
let bob: string;
let eve: string;
before(async () => {
  service = await startPeople({
    policy: POLICY,
    change(config) {
      plainVotes(config);
      config.groups = { limited: { members: [], tools: ["crm"] } };
    },
  });
  for (const name of ["ada", "bob", "eve"]) await addUser(service, { name });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  bob = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
  eve = (await makeKey(service, { name: "eve", owner: "eve", preset: "approver" })).key;
});
after(() => service.close());

let n = 0;
const post = (path: string, key: string, body: object): Promise<Answer> => service.call("POST", path, { key, body });
const read = async (id: string, key = bob): Promise<any> =>
  (await service.call("GET", `/v1/actions/${id}`, { key })).body;
const requestOf = (more: object = {}, operation = "once") => ({
  agent_id: "bot",
  tool: "pay",
  operation,
  params: { amount: 500, account: `a${++n}`, to: { name: "zoe", ids: [1] }, note: "x", ...more },
});
const submit = async (more: object = {}, operation?: string): Promise<any> =>
  (await post("/v1/actions", agent, requestOf(more, operation))).body;
const tokenOf = async (id: string, key: string): Promise<string> => (await read(id, key)).approval_token;
const edit = async (id: string, changes: object, key = bob): Promise<Answer> =>
  post(`/v1/actions/${id}/edit`, key, { token: await tokenOf(id, key), changes, reason: "less" });
const vote = async (id: string, key: string, approve = true, token?: string): Promise<Answer> =>
  post(`/v1/actions/${id}/approval`, key, { token: token ?? (await tokenOf(id, key)), approve });
const entriesOf = async (id: string): Promise<any[]> =>
  (await service.call("GET", `/v1/actions/${id}/events`, { key: bob })).body.events;

test("a changed request is approved by someone else, and only the changed one starts", needs("replay"), async () => {
  const submitted = await submit();
  const { id } = submitted;
  assert.deepEqual((await read(id)).approval_terms.editable[0], { max: 950, min: 1, path: "params.amount" });
  const stale = await tokenOf(id, eve);
  const { body: edited } = await edit(id, { "params.amount": 90, "params.to.name": "anna" });
  assert.deepEqual(
    [edited.status, edited.params.amount, edited.params.to],
    ["pending_approval", 90, { name: "anna", ids: [1] }],
  );
  assert.deepEqual([edited.proposed.params, edited.proposed.request_hash], [submitted.params, submitted.request_hash]);
  assert.notEqual(edited.request_hash, submitted.request_hash);
  assert.equal((await vote(id, eve, true, stale)).body.code, "TOKEN_INVALID", "a token of the proposed request");
  assert.match((await vote(id, bob)).body.detail, /^you changed this request/);
  assert.equal((await edit(id, { "params.amount": 80 }, eve)).body.code, "EDIT_NOT_ALLOWED", "a second change");
  assert.equal((await vote(id, eve)).body.status, "approved");
  assert.equal((await post(`/v1/actions/${id}/start`, agent, {})).body.code, "REQUEST_EDITED");
  const proposed = { request_hash: submitted.request_hash };
  assert.equal((await post(`/v1/actions/${id}/start`, agent, proposed)).body.code, "REQUEST_EDITED");
  const { permit } = (await post(`/v1/actions/${id}/permit`, agent, {})).body;
  const claims = JSON.parse(Buffer.from(permit.split(".")[1], "base64url").toString());
  assert.equal(claims.request_hash, edited.request_hash);
  const started = await post(`/v1/actions/${id}/start`, agent, { request_hash: edited.request_hash, permit });
  assert.equal(started.body.status, "executing");
  await post(`/v1/actions/${id}/result`, agent, { success: true });
  const entries = (await entriesOf(id)).map(({ entry }) => entry);
  const change = entries.find(({ edit: made }) => made != null);
  assert.deepEqual(
    [change.occasion, change.edit.previous, change.edit.comment],
    ["edit", entries[0].commitment, "less"],
  );
  assert.ok(entries.slice(1).every(({ commitment }) => commitment === change.commitment));
  const { body: replayed } = await post("/v1/replay", service.admin, { action_id: id });
  assert.equal(replayed.equal, true, JSON.stringify(replayed));
});

test("earlier votes are void, and their voters vote again", async () => {
  const { id } = await submit({}, "twice");
  assert.equal((await vote(id, eve)).body.status, "pending_approval");
  assert.equal((await edit(id, { "params.amount": 90 })).status, 200);
  assert.deepEqual((await read(id)).approvals, []);
  assert.equal((await vote(id, eve)).body.status, "pending_approval");
  assert.equal((await vote(id, service.admin)).body.status, "approved");
});

test("a change stays within the rules and bounds, and the policies decide it again", async () => {
  const { id } = await submit();
  const refused = async (changes: object, code = "EDIT_NOT_ALLOWED"): Promise<string> => {
    const { body } = await edit(id, changes);
    assert.equal(body.code, code, JSON.stringify(changes));
    return body.detail as string;
  };
  assert.match(await refused({ "params.account": "other" }), /approval.editable/);
  assert.match(await refused({ "params.amount": 0 }), /at least 1/);
  assert.match(await refused({ "params.amount": "9" }), /must be a number/);
  assert.match(await refused({ "params.to.name": "mallory" }), /one of/);
  assert.match(await refused({ "params.note": "longer" }), /at most 5/);
  assert.match(await refused({ "params.amount": 500 }), /nothing was changed/);
  assert.match(await refused({ "params.amount": 910 }), /policies deny.*too much/);
  await refused({ "params.amount": { deep: 1 } }, "VALIDATION_FAILED");
  assert.equal((await edit(id, { "params.amount": 5 })).body.status, "pending_approval", "what a rule allows, too");
  const self = (await makeKey(service, { name: "adas own", owner: "ada", preset: "approver" })).key;
  const other = await submit();
  const token = await tokenOf(other.id, bob);
  const own = await post(`/v1/actions/${other.id}/edit`, self, { token, changes: { "params.amount": 1 } });
  assert.equal(own.body.code, "SELF_APPROVAL");
  const foreign = await post(`/v1/actions/${other.id}/edit`, eve, { token, changes: { "params.amount": 1 } });
  assert.equal(foreign.body.code, "TOKEN_OTHER_APPROVER");
});

test("a change must be within the bounds of the rules at submission, even after these were widened", async () => {
  const activate = async (bounds: object, method: string, path: string): Promise<void> => {
    const approval = { editable: { "params.amount": bounds } };
    const rules = [{ name: "bounded", tool: "bounded", effect: "require_approval", approval }];
    const body = { policy: "bounds", rules };
    const { status, body: answer } = await service.call(method, `${path}?activate=true`, { key: service.admin, body });
    assert.ok(status < 300, JSON.stringify(answer));
  };
  await activate({ max: 100 }, "POST", "/v1/policies");
  const { id } = (await post("/v1/actions", agent, { ...requestOf(), tool: "bounded" })).body;
  await activate({ min: 50, max: 950 }, "PUT", "/v1/policies/bounds");
  assert.match((await edit(id, { "params.amount": 200 })).body.detail, /at most 100/);
  assert.match((await edit(id, { "params.amount": 10 })).body.detail, /at least 50/);
  assert.equal((await edit(id, { "params.amount": 60 })).status, 200);
});

test("a request that a person rejected lately is not made by a change", async () => {
  const rejected = await submit({}, "held");
  assert.equal((await vote(rejected.id, eve, false)).body.status, "denied");
  const { account } = rejected.params;
  const { id } = await submit({ account, amount: 600 }, "held");
  const { body } = await edit(id, { "params.amount": rejected.params.amount });
  assert.equal(body.code, "EDIT_NOT_ALLOWED");
  assert.match(body.detail, /^eve \(user:[0-9a-f-]+\) rejected the changed request/);
  assert.equal((await edit(id, { "params.amount": 400 })).status, 200);
});

test("the rejection of a changed request denies both requests, until it is lifted", async () => {
  const proposed = await submit({}, "held");
  const { body: edited } = await edit(proposed.id, { "params.amount": 300 });
  assert.equal((await vote(proposed.id, eve, false)).body.status, "denied");
  for (const { params } of [proposed, edited]) {
    const { status, denied_by, rejection } = await submit(params, "held");
    assert.deepEqual([status, denied_by, rejection.action_id], ["denied", "earlier_rejection", proposed.id]);
  }
  const { account } = proposed.params;
  const other = await submit({ account, amount: 600 }, "held");
  assert.equal(other.status, "pending_approval", "another request");
  assert.match(
    (await edit(other.id, { "params.amount": 300 })).body.detail,
    /^eve \(user:[0-9a-f-]+\) rejected the changed request/,
  );
  assert.equal((await post(`/v1/actions/${proposed.id}/lift-rejection`, eve, {})).status, 200);
  assert.equal((await submit(edited.params, "held")).status, "pending_approval");
});

describe("users", () => {
  const editAs = async (who: Person, id: string): Promise<Answer> => {
    const { approval_token: token } = (await who.call("GET", `/v1/actions/${id}`)).body;
    return who.call("POST", `/v1/actions/${id}/edit`, { token, changes: { "params.amount": 90 } });
  };

  test("a delegate cannot change what only the delegator sees", async () => {
    const ann = await invite(service, { name: "Ann", roles: ["approver"] });
    const cleo = await invite(service, { name: "Cleo", roles: ["approver"], groups: ["limited"] });
    const { id } = await submit();
    const until = new Date(service.runtime.host.clock() + 3_600_000).toISOString();
    const made = await ann.call("POST", `/v1/users/${ann.id}/delegations`, { to: cleo.id, until });
    assert.equal(made.status, 201);
    assert.equal((await editAs(cleo, id)).body.code, "APPROVER_NOT_ELIGIBLE");
    assert.equal((await editAs(ann, id)).status, 200);
  });

  test("a change that no other user could approve is refused, whoever else has enrolled", async (t) => {
    const fresh = await startPeople({
      policy: `policy: ask
rules:
  - { name: pay, effect: require_approval, approval: { approvers: [{ group: finance }], editable: [params.amount] } }
`,
    });
    t.after(() => fresh.close());
    const add = (name: string, role: string, groups: string[]) => invite(fresh, { name, roles: [role], groups });
    const ann = await add("Ann", "approver", ["finance"]);
    await add("Vic", "auditor", ["finance"]);
    await add("Ben", "approver", ["support"]);
    const key = (await makeKey(fresh, { name: "bot", owner: null, preset: "agent", agent_id: "bot" }, fresh.admin)).key;
    const { id } = (await fresh.call("POST", "/v1/actions", { key, body: requestOf() })).body;
    const { body } = await editAs(ann, id);
    assert.equal(body.code, "EDIT_NOT_ALLOWED");
    assert.match(body.detail, /no other user has enrolled who can approve it/);
    const cleo = await add("Cleo", "approver", ["finance"]);
    assert.equal((await editAs(ann, id)).status, 200);
    const { approval_token: token } = (await cleo.call("GET", `/v1/actions/${id}`)).body;
    const voted = await cleo.call("POST", `/v1/actions/${id}/approval`, { token, approve: true });
    assert.equal(voted.body.status, "approved");
  });

  test("a user who changed a request does not approve it with an own key, nor the other way round", async () => {
    const user = await invite(service, { name: "Bob", roles: ["approver"] });
    const byUser = await submit();
    assert.equal((await editAs(user, byUser.id)).status, 200);
    assert.equal((await vote(byUser.id, bob)).body.code, "APPROVER_NOT_ELIGIBLE");
    assert.equal((await vote(byUser.id, eve)).body.status, "approved");
    const byKey = await submit();
    assert.equal((await edit(byKey.id, { "params.amount": 90 })).status, 200);
    const { approval_token: token } = (await user.call("GET", `/v1/actions/${byKey.id}`)).body;
    const voted = await user.call("POST", `/v1/actions/${byKey.id}/approval`, { token, approve: true });
    assert.equal(voted.body.code, "APPROVER_NOT_ELIGIBLE");
  });
});

test("limits count the changed request instead of the proposed one", async () => {
  const account = `limited${++n}`;
  const first = await submit({ account, amount: 800 });
  const second = await submit({ account, amount: 600 });
  assert.equal((await submit({ account, amount: 200 })).status, "denied");
  assert.match((await edit(second.id, { "params.amount": 701 })).body.detail, /limit "daily"/);
  assert.equal((await edit(first.id, { "params.amount": 100 })).status, 200);
  assert.equal((await submit({ account, amount: 701 })).status, "pending_approval", "800 no longer count");
  assert.equal((await submit({ account, amount: 100 })).status, "denied", "1,401 do");
  await vote(first.id, eve, false);
  assert.equal((await submit({ account, amount: 100 })).status, "pending_approval", "a rejected one counts nothing");
});

test("a change races with a vote: one of them is first, and the other is refused", async () => {
  for (let i = 0; i < 5; i++) {
    const { id } = await submit();
    const [token, other] = [await tokenOf(id, eve), await tokenOf(id, bob)];
    const changes = { "params.amount": 90 };
    const [voted, edited] = await Promise.all([
      vote(id, eve, true, token),
      post(`/v1/actions/${id}/edit`, bob, { token: other, changes }),
    ]);
    const { status, proposed } = await read(id);
    if (voted.status === 200)
      assert.deepEqual([edited.body.code, status, proposed], ["ACTION_NOT_PENDING", "approved", null]);
    else assert.deepEqual([voted.body.code, edited.status, status], ["TOKEN_INVALID", 200, "pending_approval"]);
  }
});

test("what is rejected, expired or approved cannot be changed", async () => {
  for (const end of ["rejected", "approved", "expired"]) {
    const { id } = await submit();
    const token = await tokenOf(id, bob);
    if (end === "expired") service.clock.now += 86_400_000 * 8;
    else await vote(id, eve, end === "approved");
    const { body } = await post(`/v1/actions/${id}/edit`, bob, { token, changes: { "params.amount": 90 } });
    assert.equal(body.code, end === "expired" ? "APPROVAL_EXPIRED" : "ACTION_NOT_PENDING", end);
  }
});

test("a client that applies changes runs the changed parameters; one that cannot runs nothing", async () => {
  const assent = createAssent({
    url: "http://test",
    apiKey: agent,
    fetch: (url, init) => Promise.resolve(service.runtime.fetch(new Request(url as string, init))),
  });
  const request = requestOf();
  const ran: number[] = [];
  const pay = govern(({ amount }: { amount: number }) => ran.push(amount), {
    tool: "pay",
    operation: "once",
    agent: "bot",
    assent,
  });
  const call = () => pay(request.params as never, { approvalTimeout: 0 });
  const pending = (await call()) as { action: { id: string } };
  await edit(pending.action.id, { "params.amount": 90 });
  await vote(pending.action.id, eve);
  const refused = await submitAndStart(assent, request);
  assert.deepEqual([refused.state, refused.outcome], ["refused", "edited"]);
  assert.match(refused.message, /approved with other parameters: amount = 90/);
  await call();
  assert.deepEqual(ran, [90]);
});

test("an altered effective request stops everything, and the audit reports it", async () => {
  const { id } = await submit();
  await edit(id, { "params.amount": 90 });
  const row = await service.storage.action(id);
  const alter = (effective: string | null, effective_hash: string | null = row!.effective_hash): Promise<unknown> =>
    service.storage.write((tx) =>
      tx.updateAction(
        id,
        { status: "pending_approval" },
        { status: "pending_approval", effective, effective_hash, updated_at: row!.updated_at },
      ),
    );
  const token = await tokenOf(id, eve);
  for (const [altered, hash] of [
    [row!.effective!.replace('"amount":90', '"amount":91'), row!.effective_hash],
    [null, row!.effective_hash],
    [row!.effective, row!.request_hash],
    [row!.effective, null],
  ] as const) {
    await alter(altered, hash);
    assert.equal((await vote(id, eve, true, token)).body.code, "RECORD_ALTERED");
    assert.match((await auditStore(service.storage)).faults.join("\n"), /its effective request does not match/);
  }
  await alter(row!.effective);
  assert.equal((await vote(id, eve, true, token)).body.status, "approved");
});

test("the proof of each entry opens the request that it commits to", needs("provenance"), async () => {
  const submitted = await submit();
  const { body: edited } = await edit(submitted.id, { "params.amount": 90 });
  const amounts: number[] = [];
  for (const { hash } of await entriesOf(submitted.id)) {
    const { body } = await service.call("GET", `/v1/provenance/${hash}/proof`, { key: service.admin });
    amounts.push(JSON.parse(body.opening.request).params.amount);
  }
  assert.deepEqual(amounts, [submitted.params.amount, edited.params.amount]);
});
