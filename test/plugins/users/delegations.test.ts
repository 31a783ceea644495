/** Delegations: in whose name a vote counts, and what ends them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, type Answer, type Service, person } from "../../support/service.ts";

const DAY = 86_400_000;
const rule = (tool: string, approval: string): string =>
  `  - { name: ${tool}, tool: ${tool}, effect: require_approval, approval: ${approval} }\n`;
const POLICY = `
policy: ask
rules:
${rule("finance", "{ approvers: [{ group: finance }] }")}
${rule("both", "{ approvers: [{ group: finance }, { group: support }] }")}
${rule("two", "{ quorum: 2 }")}
${rule("crm", "{ quorum: 1 }")}
${rule("outside", "{ exclude_requester_groups: true }")}
`;

let service: Service;
let agent: string;
let ann: Person;
let ben: Person;
let cleo: Person;
let n = 0;
before(async () => {
  service = await startPeople({
    policy: POLICY,
    change(config) {
      config.rota = {
        oncall: { members: [person("zoe")], every: "24h", start: "2026-01-01T00:00", time_zone: "UTC" },
      };
      config.groups = { limited: { members: [], tools: ["crm"] }, clerks: { members: [person("ada")] } };
    },
  });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  ann = await invite(service, { name: "Ann", roles: ["approver"], groups: ["finance"] });
  ben = await invite(service, { name: "Ben", roles: ["approver"], groups: ["support"] });
  cleo = await invite(service, { name: "Cleo", roles: ["approver"], groups: ["limited"] });
});
after(() => service.close());

const submit = async (tool: string, key = agent, agent_id = "bot"): Promise<string> =>
  (await service.call("POST", "/v1/actions", { key, body: { agent_id, tool, operation: "x", params: { n: ++n } } }))
    .body.id;
const terms = async (id: string, who: Person) => (await who.call("GET", `/v1/actions/${id}`)).body.approval_terms;
async function vote(id: string, who: Person, approve = true, more: object = {}): Promise<Answer> {
  const { body } = await who.call("GET", `/v1/actions/${id}`);
  return who.call("POST", `/v1/actions/${id}/approval`, { token: body.approval_token ?? "none", approve, ...more });
}
const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];
const until = (days: number): string => new Date(service.runtime.host.clock() + days * DAY).toISOString();
const delegate = (from: Person, to: Person, more: object = {}): Promise<Answer> =>
  from.call("POST", `/v1/users/${from.id}/delegations`, { to: to.id, until: until(7), ...more });
const revoke = (who: Person, id: string): Promise<Answer> => who.call("POST", `/v1/delegations/${id}/revoke`, {});
async function whileDelegated(from: Person, to: Person, more: object, run: (id: string) => Promise<void>) {
  const { status, body } = await delegate(from, to, more);
  assert.equal(status, 201, JSON.stringify(body));
  try {
    await run(body.id);
  } finally {
    await revoke(from, body.id);
  }
}

test("a delegate's vote counts for the delegator's groups, and the entry, the record and the terms name both", async () => {
  const id = await submit("finance");
  assert.deepEqual(said(await vote(id, ben)), [403, "APPROVER_NOT_ELIGIBLE"]);
  await whileDelegated(ann, ben, { comment: "on holiday" }, async (delegation) => {
    assert.equal((await terms(id, ben)).on_behalf_of, `user:${ann.id}`);
    const answer = await vote(id, ben);
    assert.deepEqual(said(answer), [200, "approved"]);
    const [{ approver, on_behalf_of }] = answer.body.approvals;
    assert.deepEqual([approver, on_behalf_of], [`user:${ben.id}`, `user:${ann.id}`]);
    const { body } = await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin });
    const { entry } = body.events[1];
    assert.deepEqual(entry.delegation, { id: delegation, from: `user:${ann.id}` });
    assert.deepEqual([entry.by.principal, entry.groups], [`user:${ben.id}`, ["finance"]]);
  });
});

test("the delegate and the delegator are one person, in either order", async () => {
  await whileDelegated(ann, ben, {}, async () => {
    const first = await submit("both");
    assert.deepEqual(said(await vote(first, ben)), [200, "pending_approval"]);
    assert.deepEqual(said(await vote(first, ben)), [403, "TOKEN_MALFORMED"], "nobody gets a second token");
    const second = await submit("finance");
    assert.deepEqual(said(await vote(second, ben)), [200, "approved"]);
    // Ben's own vote suffices for any two people, so Ann stays free to vote herself.
    const two = await submit("two");
    assert.deepEqual(said(await vote(two, ben)), [200, "pending_approval"]);
    assert.equal((await terms(two, ann)).blocked, null);
    assert.deepEqual(said(await vote(two, ann)), [200, "approved"]);
  });
  const id = await submit("both");
  await whileDelegated(ann, cleo, {}, async () => {
    assert.deepEqual(said(await vote(id, cleo)), [200, "pending_approval"], "Cleo counts for finance, for Ann");
    const again = await vote(id, ann);
    assert.deepEqual(said(again), [409, "ALREADY_VOTED"]);
    assert.match(again.body.detail as string, /one of you voted on behalf of the other/);
  });
  const other = await submit("both");
  await vote(other, ann);
  await whileDelegated(ann, cleo, {}, async () => {
    const refused = await vote(other, cleo);
    assert.equal(refused.status, 409, "in Ann's place she sees it, but Ann has voted");
  });
});

test("a delegation limited to groups, agents or tools covers only these, including in lists of the delegate", async () => {
  const id = await submit("finance");
  for (const limit of [{ groups: ["oncall"] }, { tools: ["crm"] }, { agents: ["other-*"] }])
    await whileDelegated(ann, ben, limit, async () => {
      const { blocked } = await terms(id, ben);
      assert.equal(blocked.code, "APPROVER_NOT_ELIGIBLE", JSON.stringify(limit));
      if (!("groups" in limit)) assert.match(blocked.detail, /Ann .* delegated other agents and tools to you/);
    });
  assert.equal((await cleo.call("GET", `/v1/actions/${id}`)).status, 404);
  await whileDelegated(ann, cleo, { tools: ["finance"] }, async () => {
    assert.equal((await cleo.call("GET", `/v1/actions/${id}`)).status, 200);
    assert.equal((await cleo.call("GET", `/v1/actions/${await submit("two")}`)).status, 404);
    assert.deepEqual(said(await vote(id, cleo)), [200, "approved"]);
  });
  assert.equal((await cleo.call("GET", `/v1/actions/${id}`)).status, 404);
});

test("a delegation of groups gives nothing while the delegator is in none of them, nor on call", async () => {
  const seen = async (id: string): Promise<boolean> => (await cleo.call("GET", `/v1/actions/${id}`)).status === 200;
  const inGroups = (groups: string[]): Promise<Answer> =>
    service.call("PATCH", `/v1/users/${ann.id}`, { key: service.admin, body: { groups } });
  const [any, finance] = [await submit("two"), await submit("finance")];
  await whileDelegated(ann, cleo, { groups: ["oncall"] }, async () => {
    assert.equal(await seen(any), false, "someone else is on call");
  });
  await whileDelegated(ann, cleo, { groups: ["finance"] }, async () => {
    assert.equal(await seen(any), true);
    assert.equal((await inGroups(["support"])).status, 200);
    assert.deepEqual([await seen(any), await seen(finance)], [false, false]);
    await inGroups(["finance"]);
    assert.deepEqual(said(await vote(finance, cleo)), [200, "approved"]);
  });
});

test("no one can approve on behalf of the person behind the agent, and a delegate who is that person cannot approve", async () => {
  const annsAgent = await makeKey(service, { name: "a", owner: ann.principal, preset: "agent", agent_id: "anns" });
  const bensAgent = await makeKey(service, { name: "b", owner: ben.principal, preset: "agent", agent_id: "bens" });
  await whileDelegated(ann, ben, {}, async () => {
    const own = await submit("finance", annsAgent.key, "anns");
    const refused = await vote(own, ben);
    assert.deepEqual(said(refused), [403, "APPROVER_NOT_ELIGIBLE"]);
    assert.match(
      refused.body.detail as string,
      /Ann .* is the person behind the agent, so no one can approve on their behalf/,
    );
    const delegates = await submit("finance", bensAgent.key, "bens");
    assert.equal((await terms(delegates, ben)).blocked.code, "SELF_APPROVAL");
    assert.deepEqual(said(await vote(delegates, ben)), [403, "SELF_APPROVAL"]);
  });
  await whileDelegated(ann, cleo, {}, async () => {
    const own = await submit("finance", annsAgent.key, "anns");
    assert.equal((await vote(own, cleo, false)).body.code, "APPROVER_NOT_ELIGIBLE", "she sees it through Ann only");
  });
});

test("chains are not followed, and a key of the delegate does not vote for the delegator", async () => {
  const id = await submit("finance");
  await whileDelegated(ann, cleo, {}, () =>
    whileDelegated(cleo, ben, {}, async () => {
      assert.equal((await terms(id, ben)).blocked.code, "APPROVER_NOT_ELIGIBLE");
    }),
  );
  await whileDelegated(ann, ben, {}, async () => {
    const { key } = await makeKey(service, { name: "bens key", owner: ben.principal, preset: "approver" });
    const { body } = await service.call("GET", `/v1/actions/${id}`, { key });
    assert.equal(body.approval_terms.blocked.code, "APPROVER_NOT_ELIGIBLE");
  });
});

test("the requester's groups exclude the delegate and the delegator alike", async () => {
  const dora = await invite(service, { name: "Dora", roles: ["approver"], groups: ["clerks"] });
  const id = await submit("outside");
  const { blocked } = await terms(id, dora);
  assert.equal(blocked.code, "APPROVER_NOT_ELIGIBLE");
  assert.match(blocked.detail, /requester's groups, and you, or the user for whom you would vote, are one;/);
  const { key } = await makeKey(service, { name: "agent of no one", owner: null, preset: "agent", agent_id: "bot" });
  const unknown = await terms(await submit("outside", key), ann);
  assert.match(unknown.blocked.detail, /the key that submitted the action has no owner, so no one can approve it/);
  await whileDelegated(ben, dora, {}, async () => {
    assert.equal((await terms(id, dora)).blocked.code, "APPROVER_NOT_ELIGIBLE");
  });
  await whileDelegated(dora, ben, {}, async () => {
    assert.equal((await terms(id, ben)).on_behalf_of, null, "his own vote counts, hers would not");
  });
});

test("it ends at its time, when it is revoked, when the delegator loses the role, and with either user", async () => {
  const id = await submit("finance");
  const open = async (who: Person) => (await terms(id, who)).on_behalf_of !== null;
  const later = (await delegate(ann, ben, { starts_at: until(1), until: until(2) })).body;
  assert.equal(later.status, "scheduled");
  assert.equal(await open(ben), false);
  await revoke(ben, later.id);
  const admin = (await delegate(ann, ben)).body;
  assert.equal(await open(ben), true);
  const ended = await service.call("POST", `/v1/delegations/${admin.id}/revoke`, { key: service.admin, body: {} });
  assert.deepEqual([ended.body.status, ended.body.ended.cause], ["ended", "revoked"]);
  assert.equal(await open(ben), false);
  assert.equal((await revoke(ann, admin.id)).body.code, "USERS_DELEGATION_ENDED");

  await delegate(ann, ben);
  const roles = (names: string[]) =>
    service.call("PATCH", `/v1/users/${ann.id}`, { key: service.admin, body: { roles: names } });
  await roles(["viewer"]);
  assert.equal(await open(ben), false);
  await roles(["approver"]);
  assert.equal(await open(ben), true);

  const eve = await invite(service, { name: "Eve", roles: ["approver"], groups: ["finance"] });
  const one = (await delegate(eve, ben)).body.id as string;
  await service.call("POST", `/v1/users/${eve.id}/end`, { key: service.admin, body: {} });
  const shown = await service.call("GET", `/v1/delegations/${one}`, { key: service.admin });
  assert.deepEqual([shown.body.status, shown.body.ended.cause], ["ended", "user_ended"]);
  await service.call("POST", `/v1/users/${eve.id}/resume`, { key: service.admin });
  assert.equal((await service.call("GET", `/v1/delegations/${one}`, { key: service.admin })).body.status, "ended");
});

test("only the user themselves delegates, in a session, to an approver, for at most 90 days", async () => {
  const viewer = await invite(service, { name: "Vic", roles: ["viewer"] });
  const code = async (answer: Promise<Answer>): Promise<string> => (await answer).body.code as string;
  const body = { to: ben.id, until: until(7) };
  assert.equal(await code(ben.call("POST", `/v1/users/${ann.id}/delegations`, body)), "USERS_SESSION_REQUIRED");
  const byKey = service.call("POST", `/v1/users/${ann.id}/delegations`, { key: service.admin, body });
  assert.equal(await code(byKey), "USERS_SESSION_REQUIRED");
  assert.equal(await code(delegate(viewer, ben)), "INSUFFICIENT_SCOPE");
  assert.equal(await code(delegate(ann, ann)), "USERS_DELEGATION_INVALID");
  assert.equal(await code(delegate(ann, viewer)), "USERS_DELEGATION_INVALID");
  assert.equal(await code(delegate(ann, ben, { until: until(91) })), "USERS_DELEGATION_INVALID");
  assert.equal(await code(delegate(ann, ben, { until: until(-1) })), "USERS_DELEGATION_INVALID");
  assert.equal(await code(delegate(ann, ben, { starts_at: until(-1) })), "USERS_DELEGATION_INVALID");
  assert.equal(await code(delegate(ann, ben, { until: "tomorrow" })), "USERS_DELEGATION_INVALID");
  const foreign = await delegate(ann, ben, { groups: ["finance", "legal"] });
  assert.equal(foreign.body.code, "USERS_DELEGATION_INVALID");
  assert.match(foreign.body.detail as string, /"legal" is neither one of your groups nor a rota/);
});

test("a user can list approvers to delegate to and their own groups, but not those of other users", async () => {
  const vera = await invite(service, { name: "Vera", roles: ["viewer"] });
  const gone = await invite(service, { name: "Gone", roles: ["approver"] });
  await service.call("POST", `/v1/users/${gone.id}/end`, { key: service.admin, body: {} });
  const { body } = await ann.call("GET", `/v1/users/${ann.id}/delegates?limit=200`);
  const names = body.delegates.map(({ name }: { name: string }) => name);
  assert.ok(names.includes("Ben") && names.includes("Cleo"), JSON.stringify(names));
  for (const other of ["Ann", "Vera", "Gone"]) assert.ok(!names.includes(other), other);
  assert.deepEqual(body.groups, ["finance", "oncall"]);
  const [first] = (await ann.call("GET", `/v1/users/${ann.id}/delegates?limit=1`)).body.delegates;
  assert.equal(first.name, names[0]);
  assert.equal((await ben.call("GET", `/v1/users/${ann.id}/delegates`)).body.code, "USERS_SESSION_REQUIRED");
  assert.equal((await vera.call("GET", `/v1/users/${vera.id}/delegates`)).body.code, "INSUFFICIENT_SCOPE");
  const byKey = await service.call("GET", `/v1/users/${ann.id}/delegates`, { key: service.admin });
  assert.equal(byKey.body.code, "USERS_SESSION_REQUIRED");
});

test("the id follows the name of a user whose name looks like that of another", async () => {
  const other = await invite(service, { name: "BEN", roles: ["viewer"] });
  const { body } = await delegate(cleo, ben, { tools: ["crm"] });
  const list = (await cleo.call("GET", "/v1/delegations")).body.delegations;
  const { delegates } = (await cleo.call("GET", `/v1/users/${cleo.id}/delegates?limit=200`)).body;
  const listed = delegates.find(({ id }: { id: string }) => id === ben.id);
  for (const { name } of [body.to, list.find(({ id }: { id: string }) => id === body.id).to, listed])
    assert.equal(name, `Ben (user:${ben.id})`);
  assert.equal(body.from.name, "Cleo");
  await service.call("POST", `/v1/users/${other.id}/end`, { key: service.admin, body: {} });
  await cleo.call("POST", `/v1/delegations/${body.id}/revoke`, {});
});

test("users list their own delegations, and callers who read users list all", async () => {
  const { body } = await delegate(cleo, ben, { tools: ["crm"] });
  const ids = async (answer: Promise<Answer>): Promise<string[]> =>
    (await answer).body.delegations.map(({ id }: { id: string }) => id);
  assert.ok((await ids(ben.call("GET", "/v1/delegations?status=active"))).includes(body.id));
  assert.ok(!(await ids(ann.call("GET", "/v1/delegations"))).includes(body.id));
  assert.equal((await ann.call("GET", `/v1/delegations/${body.id}`)).body.code, "USERS_DELEGATION_NOT_FOUND");
  const all = await ids(service.call("GET", `/v1/delegations?user_id=${cleo.id}`, { key: service.admin }));
  assert.equal(all[0], body.id);
});
