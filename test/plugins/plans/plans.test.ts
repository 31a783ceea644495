/**
 * Plans: actions that are submitted at once and approved as one list, and started one by one.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { invite, startPeople } from "../../support/people.ts";
import { signature } from "../../support/signed-votes.ts";
import { makeKey, plainVotes, type Answer, type Service, person } from "../../support/service.ts";

const POLICY = `
policy: ask
rules:
  - { name: read, tool: db, operation: read, effect: allow }
  - { name: never, tool: db, operation: drop, effect: deny, reason: never }
  - { name: capped, tool: db, operation: capped, effect: allow }
  - { name: twice, tool: db, operation: twice, effect: require_approval, approval: { quorum: 2 } }
  - { name: finance, tool: db, operation: pay, effect: require_approval, approval: { approvers: [{ group: finance }] } }
  - { name: signed, tool: db, operation: signed, effect: require_approval, approval: { signature: passkey } }
  - { name: edit, tool: db, operation: edit, effect: require_approval, approval: { editable: { params.n: { min: 0, max: 9 } } } }
  - { name: held, tool: db, operation: held, effect: require_approval, approval: { rejection_holds: 1h } }
  - { name: ask, tool: db, effect: require_approval }
limits:
  - { name: five, tool: db, operation: capped, count: 5, window: 24h }
`;

let service: Service;
let agent: string;
let bob: string;
let eve: string;
let fin: string;
before(async () => {
  service = await startPeople({
    policy: POLICY,
    change(config) {
      plainVotes(config);
      config.approvals.max_pending_per_key = 102;
      config.groups = {
        finance: { members: [person("fin")], tools: ["*"] },
        narrow: { members: [person("nora")], tools: ["crm"] },
      };
    },
  });
  agent = (await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" })).key;
  bob = (await makeKey(service, { name: "bob", owner: "bob", preset: "approver" })).key;
  eve = (await makeKey(service, { name: "eve", owner: "eve", preset: "approver" })).key;
  fin = (await makeKey(service, { name: "fin", owner: "fin", preset: "approver" })).key;
});
after(() => service.close());

let n = 0;
const post = (path: string, key: string, body: object = {}): Promise<Answer> =>
  service.call("POST", path, { key, body });
const step = (operation = "ask", more: object = {}) => ({
  agent_id: "bot",
  tool: "db",
  operation,
  params: { n: 5, run: ++n },
  ...more,
});
const submit = async (operations: string[], terms: object = {}): Promise<any> => {
  const { status, body } = await post("/v1/plans", agent, { actions: operations.map((name) => step(name)), ...terms });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const read = async (id: string, key = bob): Promise<any> =>
  (await service.call("GET", `/v1/plans/${id}`, { key })).body;
const answer = async (id: string, key = bob, more: object = {}): Promise<Answer> => {
  const { approval_token: token } = await read(id, key);
  return post(`/v1/plans/${id}/approval`, key, { token, approve: true, ...more });
};
const statuses = (plan: any): string[] => plan.actions.map(({ status }: any) => status);
const start = (plan: any, i: number, body: object = {}): Promise<Answer> =>
  post(`/v1/actions/${plan.actions[i].id}/start`, agent, body);
const finish = (plan: any, i: number, success = true): Promise<Answer> =>
  post(`/v1/actions/${plan.actions[i].id}/result`, agent, { success });
const code = ({ status, body }: Answer): string => (status === 200 ? body.status : body.code);

test(
  "each action gets its own decision, and one vote approves those that require approval",
  needs("replay"),
  async () => {
    const plan = await submit(["read", "ask", "drop", "ask"]);
    assert.deepEqual(statuses(plan), ["allowed", "pending_approval", "denied", "pending_approval"]);
    assert.deepEqual(
      plan.actions.map((action: any) => action.plan),
      [1, 2, 3, 4].map((position) => ({ id: plan.id, position })),
    );
    const { body: approved } = await answer(plan.id, bob, { reason: "looks right" });
    assert.deepEqual(statuses(approved), ["allowed", "approved", "denied", "approved"]);
    assert.equal(approved.approval_token, undefined);
    for (const i of [3, 1, 0]) assert.equal(code(await start(plan, i)), "executing", "any order");
    assert.equal(code(await start(plan, 1)), "ACTION_NOT_STARTABLE", "each starts once");
    const { body } = await service.call("GET", `/v1/actions/${plan.actions[3].id}/events`, { key: bob });
    const vote = body.events.find(({ type }: any) => type === "approval").entry;
    assert.deepEqual([vote.plan, vote.comment, vote.verdict], [plan.digest, "looks right", "approve"]);
    const { body: replayed } = await post("/v1/replay", service.admin, { action_id: plan.actions[3].id });
    assert.equal(replayed.equal, true);
  },
);

test("an approver strikes out actions with a reason, and approves the rest", async () => {
  const plan = await submit(["ask", "held", "ask"]);
  const { body } = await answer(plan.id, bob, { strikes: [{ position: 2, reason: "not this one" }] });
  assert.deepEqual(statuses(body), ["approved", "denied", "approved"]);
  assert.notEqual(body.digest, plan.digest, "the list that remains is another one");
  const struck = body.actions[1];
  assert.deepEqual([struck.denied_by, struck.rejection.reason], ["person", "not this one"]);
  assert.equal(code(await start(plan, 1)), "ACTION_NOT_STARTABLE");
  assert.equal(code(await start(plan, 2)), "executing");
  const { params } = struck;
  const again = await post("/v1/plans", agent, { actions: [step("held", { params }), step()] });
  assert.deepEqual(statuses(again.body), ["denied", "pending_approval"], "the rejection holds");
});

test("a rejection rejects every pending action", async () => {
  const plan = await submit(["ask", "read", "ask"]);
  assert.deepEqual(statuses((await answer(plan.id, bob, { approve: false })).body), ["denied", "allowed", "denied"]);
  const other = await submit(["ask"]);
  const both = await answer(other.id, bob, { approve: false, strikes: [{ position: 1 }] });
  assert.equal(code(both), "VALIDATION_FAILED");
});

test("nothing is recorded if one action cannot be submitted, and the error names it", async () => {
  const size = async (): Promise<number> => (await service.storage.head()).size;
  const before = await size();
  const refused = async (actions: object[]): Promise<any> => {
    const { status, body } = await post("/v1/plans", agent, { actions });
    assert.ok(status >= 400, JSON.stringify(body));
    return body;
  };
  assert.equal((await refused([step(), { ...step(), tool: "" }])).errors[0].pointer, "/actions/1/tool");
  assert.match((await refused([step(), step("ask", { agent_id: "other" })])).detail, /action 2: .*same agent/);
  const large = await refused([step(), step(), step("ask", { meta: { text: "x".repeat(5000) } })]);
  assert.deepEqual([large.errors[0].pointer, large.detail.startsWith("action 3: ")], ["/actions/2/meta", true]);
  assert.equal((await refused([step("ask", { agent_id: "other" })])).code, "AGENT_MISMATCH");
  assert.equal((await refused([])).code, "VALIDATION_FAILED");
  assert.equal((await refused(Array.from({ length: 101 }, () => step()))).code, "VALIDATION_FAILED");
  assert.equal(await size(), before);
});

test("a plan that exceeds the limit of pending actions records nothing, and another request of its batch is recorded", async () => {
  const { key } = await makeKey(service, { name: "full", owner: "ada", preset: "agent", agent_id: "full" });
  const many = (count: number) => ({ actions: Array.from({ length: count }, () => step("ask", { agent_id: "full" })) });
  assert.equal((await post("/v1/plans", key, many(100))).status, 200, "100 actions fit into one plan");
  const before = await service.storage.pendingCount({ all: true }, Date.now());
  const [refused, other] = await Promise.all([post("/v1/plans", key, many(3)), submit(["ask"])]);
  assert.deepEqual([refused.body.code, refused.status], ["TOO_MANY_PENDING", 429]);
  assert.match(refused.body.detail, /^action 3: /);
  assert.equal(await service.storage.pendingCount({ all: true }, Date.now()), before + 1);
  await answer(other.id, bob, { approve: false });
});

test("limits count each action of a plan", async () => {
  const plan = await submit(["capped", "capped", "capped"]);
  assert.deepEqual(statuses(plan), ["allowed", "allowed", "allowed"]);
  assert.deepEqual(statuses(await submit(["capped", "capped", "capped", "capped"])), [
    "allowed",
    "allowed",
    "denied",
    "denied",
  ]);
});

test("an idempotency key returns the plan that it created, and never another", async () => {
  const body = { actions: [step(), step("read")], ordered: true };
  const send = (more: object = {}) =>
    service.call("POST", "/v1/plans", { key: agent, body: { ...body, ...more }, headers: { "idempotency-key": "p1" } });
  const first = await send();
  const second = await send();
  assert.equal(second.body.id, first.body.id);
  assert.equal(second.headers.get("idempotency-replayed"), "true");
  for (const more of [{ ordered: false }, { stop_on_failure: true }, { actions: body.actions.toReversed() }])
    assert.equal((await send(more)).body.code, "IDEMPOTENCY_CONFLICT", JSON.stringify(more));
  await answer(first.body.id);
});

test("an action of a plan is approved only with its plan, and can be rejected by itself", async () => {
  const plan = await submit(["ask", "ask"]);
  const [{ id }] = plan.actions;
  const { approval_token: token, approval_terms } = (await service.call("GET", `/v1/actions/${id}`, { key: bob })).body;
  assert.equal(approval_terms.blocked.code, "PLAN_VOTE_REQUIRED");
  const vote = (approve: boolean): Promise<Answer> => post(`/v1/actions/${id}/approval`, bob, { token, approve });
  assert.equal(code(await vote(true)), "PLAN_VOTE_REQUIRED");
  assert.equal(code(await vote(false)), "denied");
  assert.deepEqual(statuses((await answer(plan.id)).body), ["denied", "approved"]);
});

test("a quorum of two counts votes on the same list, and a strike voids the earlier vote", async () => {
  const plan = await submit(["twice", "twice"]);
  assert.deepEqual(statuses((await answer(plan.id, bob)).body), ["pending_approval", "pending_approval"]);
  assert.equal(code(await answer(plan.id, bob)), "ALREADY_VOTED");
  assert.deepEqual(statuses((await answer(plan.id, eve)).body), ["approved", "approved"]);
  const other = await submit(["twice", "twice"]);
  await answer(other.id, bob);
  const struck = await answer(other.id, eve, { strikes: [{ position: 1 }] });
  assert.deepEqual(statuses(struck.body), ["denied", "pending_approval"], "bob approved another list");
  assert.deepEqual(
    struck.body.actions[1].approvals.map(({ approver }: any) => approver),
    [person("eve")],
  );
  assert.deepEqual(statuses((await answer(other.id, bob)).body), ["denied", "approved"], "bob approves the new one");
});

test("a token of a plan covers exactly the actions that were pending, even without previews", async () => {
  const plan = await submit(["ask", "pay"]);
  const { approval_token: token } = await read(plan.id, fin);
  assert.deepEqual(statuses((await answer(plan.id)).body), ["approved", "pending_approval"]);
  const stale = await post(`/v1/plans/${plan.id}/approval`, fin, { token, approve: true });
  assert.equal(stale.body.code, "TOKEN_INVALID");
  assert.deepEqual(statuses((await answer(plan.id, fin)).body), ["approved", "approved"]);
});

test("an action for other approvers stays pending", async () => {
  const plan = await submit(["ask", "pay"]);
  const { body } = await answer(plan.id, bob);
  assert.deepEqual(statuses(body), ["approved", "pending_approval"]);
  assert.equal(code(await answer(plan.id, eve)), "APPROVER_NOT_ELIGIBLE");
  assert.match((await answer(plan.id, eve, { approve: true })).body.detail, /^action 2: /);
  assert.deepEqual(statuses((await answer(plan.id, fin)).body), ["approved", "approved"]);
  assert.equal(code(await start(plan, 0)), "executing", "the list has not changed");
});

test("a required order is checked for each start and permit", async () => {
  const plan = await submit(["ask", "read", "ask"], { ordered: true });
  assert.equal(code(await start(plan, 1)), "PLAN_WAITING", "an allowed action waits for the approval of the first");
  await answer(plan.id);
  const permit = (i: number): Promise<Answer> => post(`/v1/actions/${plan.actions[i].id}/permit`, agent);
  assert.equal(code(await permit(2)), "PLAN_WAITING");
  assert.equal(code(await start(plan, 2)), "PLAN_WAITING");
  assert.equal(code(await start(plan, 0)), "executing");
  assert.equal(code(await start(plan, 1)), "PLAN_WAITING", "the first one has no result yet");
  await finish(plan, 0, false);
  assert.equal(code(await start(plan, 1)), "executing", "a failure does not stop this plan");
  await finish(plan, 1);
  const { body } = await permit(2);
  assert.equal(code(await start(plan, 2, { permit: body.permit })), "executing");
});

test("a plan stops at the first failure, and at an action that ends without running", async () => {
  const plan = await submit(["read", "ask", "read"], { stop_on_failure: true });
  await answer(plan.id);
  await start(plan, 0);
  await finish(plan, 0, false);
  assert.equal(code(await start(plan, 1)), "PLAN_STOPPED");
  assert.equal(code(await start(plan, 2)), "PLAN_STOPPED");
  assert.deepEqual((await read(plan.id)).stopped, { position: 1, status: "failed" });
  const denied = await submit(["read", "drop"], { stop_on_failure: true });
  assert.equal(code(await start(denied, 0)), "PLAN_STOPPED", "the second one is denied");
  const seen = await submit(["read", "drop", "ask"], { stop_on_failure: true });
  await answer(seen.id);
  assert.equal(code(await start(seen, 2)), "executing", "people approved the list without the denied one");
  assert.equal(code(await start(seen, 0)), "executing");
});

test("votes on a list that has changed since do not start anything", async () => {
  const plan = await submit(["ask", "ask", "read"]);
  await answer(plan.id);
  await post(`/v1/actions/${plan.actions[0].id}/cancel`, service.admin);
  assert.equal(code(await start(plan, 2)), "executing", "it needs no vote");
  assert.equal(code(await start(plan, 1)), "MORE_APPROVALS_NEEDED");
  assert.deepEqual(statuses(await read(plan.id)), ["cancelled", "pending_approval", "executing"]);
  assert.deepEqual(statuses((await answer(plan.id)).body), ["cancelled", "approved", "executing"], "bob votes again");
  assert.equal(code(await start(plan, 1)), "executing");
});

test(
  "a change of a request voids the votes on the plan, and the editor does not approve it",
  needs("edits"),
  async () => {
    const plan = await submit(["twice", "edit"]);
    const stale = (await read(plan.id, eve)).approval_token;
    await answer(plan.id, eve, {});
    const [, { id }] = plan.actions;
    const other = await submit(["twice", "edit"]);
    const [first, second] = other.actions;
    await answer(other.id, eve, { strikes: [] });
    assert.deepEqual(statuses(await read(other.id)), ["pending_approval", "approved"]);
    assert.ok(first.id !== second.id && id !== second.id);
    const late = await submit(["twice", "edit"]);
    const { approval_token: token } = (await service.call("GET", `/v1/actions/${late.actions[1].id}`, { key: bob }))
      .body;
    const before = (await read(late.id, eve)).approval_token;
    const edited = await post(`/v1/actions/${late.actions[1].id}/edit`, bob, { token, changes: { "params.n": 1 } });
    assert.equal(edited.status, 200, JSON.stringify(edited.body));
    const vote = (by: string): Promise<Answer> =>
      post(`/v1/plans/${late.id}/approval`, eve, { token: by, approve: true });
    assert.equal(code(await vote(before)), "TOKEN_INVALID");
    assert.equal(code(await vote(stale)), "TOKEN_OTHER_ACTION");
    assert.deepEqual(statuses((await answer(late.id, bob)).body), ["pending_approval", "pending_approval"]);
    assert.deepEqual(statuses((await answer(late.id, eve)).body), ["approved", "approved"]);
    assert.equal(code(await start(late, 1)), "REQUEST_EDITED");
    const { request_hash } = (await read(late.id)).actions[1];
    assert.equal(code(await start(late, 1, { request_hash })), "executing");
  },
);

test("a plan is seen and approved only by those who see every action", async () => {
  const { key: nora } = await makeKey(service, { name: "nora", owner: "nora", preset: "approver" });
  const plan = await submit(["ask"]);
  assert.equal((await service.call("GET", `/v1/plans/${plan.id}`, { key: nora })).status, 404);
  const { key: other } = await makeKey(service, { name: "other", owner: "x", preset: "agent", agent_id: "other" });
  assert.equal((await service.call("GET", `/v1/plans/${plan.id}`, { key: other })).body.code, "PLAN_NOT_FOUND");
  assert.equal((await read(plan.id, agent)).approval_token, undefined);
  const self = (await makeKey(service, { name: "adas own", owner: "ada", preset: "approver" })).key;
  assert.equal(code(await answer(plan.id, self)), "SELF_APPROVAL");
});

test(
  "a stop halts the rest of a plan, and a suspension or the end of its key voids it",
  needs("agents", "stop"),
  async () => {
    const { key, id } = await makeKey(service, { name: "doomed", owner: "ada", preset: "agent", agent_id: "doomed" });
    await post("/v1/agents", service.admin, { id: "doomed" });
    const begin = ({ actions }: any, i: number): Promise<Answer> => post(`/v1/actions/${actions[i].id}/start`, key);
    const startPlan = async (): Promise<any> => {
      const actions = Array.from({ length: 3 }, () => step("ask", { agent_id: "doomed" }));
      const plan = (await post("/v1/plans", key, { actions })).body;
      assert.deepEqual(statuses((await answer(plan.id)).body), ["approved", "approved", "approved"]);
      assert.equal(code(await begin(plan, 0)), "executing");
      return plan;
    };
    const plan = await startPlan();
    const { body: stop } = await post("/v1/stop", service.admin, { agent: "doomed", reason: "odd" });
    for (const i of [1, 2]) assert.equal(code(await begin(plan, i)), "STOPPED");
    const other = (await post("/v1/plans", key, { actions: [step("ask", { agent_id: "doomed" })] })).body;
    assert.deepEqual(statuses(other), ["denied"]);
    await post(`/v1/stop/${stop.id}/lift`, service.admin, { reason: "fine" });
    assert.equal((await post("/v1/agents/doomed/suspend", service.admin, { reason: "odd again" })).status, 200);
    assert.deepEqual(statuses(await read(plan.id)), ["executing", "cancelled", "cancelled"]);
    assert.equal((await service.call("POST", "/v1/agents/doomed/resume", { key: service.admin })).status, 200);
    for (const i of [1, 2])
      assert.equal(code(await begin(plan, i)), "ACTION_NOT_STARTABLE", "also after it was resumed");
    const last = await startPlan();
    await service.call("DELETE", `/v1/api-keys/${id}`, { key: service.admin });
    assert.deepEqual(statuses(await read(last.id)), ["executing", "cancelled", "cancelled"]);
  },
);

test("the submitter can cancel a plan's pending actions, an admin also its startable actions, and others none", async () => {
  const cancel = (plan: any, key: string): Promise<Answer> =>
    post(`/v1/plans/${plan.id}/cancel`, key, { reason: "not today" });
  const plan = await submit(["read", "twice", "drop", "ask"]);
  await answer(plan.id);
  assert.deepEqual(statuses(await read(plan.id)), ["allowed", "pending_approval", "denied", "approved"]);
  const { key: other } = await makeKey(service, { name: "other of ada", owner: "x", preset: "agent" });
  assert.equal(code(await cancel(plan, other)), "PLAN_NOT_FOUND");
  assert.deepEqual(statuses((await cancel(plan, agent)).body), ["allowed", "cancelled", "denied", "approved"]);
  assert.equal(code(await start(plan, 3)), "MORE_APPROVALS_NEEDED", "the list that was approved has changed");
  const { body: events } = await service.call("GET", `/v1/actions/${plan.actions[1].id}/events`, { key: bob });
  assert.deepEqual(
    [events.events.at(-1).entry.verdict, events.events.at(-1).entry.comment],
    ["cancelled", "not today"],
  );
  assert.deepEqual(statuses((await cancel(plan, service.admin)).body), [
    "cancelled",
    "cancelled",
    "denied",
    "cancelled",
  ]);
  assert.equal(code(await cancel(plan, service.admin)), "ACTION_NOT_PENDING");
});

test("plans are listed newest first, for those who may see every action of them", async () => {
  const { key, id } = await makeKey(service, { name: "lister", owner: "ada", preset: "agent", agent_id: "lister" });
  const made: string[] = [];
  for (const tool of ["db", "db", "crm"]) {
    const actions = [step("ask", { agent_id: "lister", tool }), step("read", { agent_id: "lister" })];
    made.unshift((await post("/v1/plans", key, { actions, ordered: true })).body.id);
  }
  const list = async (query: string, who = bob): Promise<any> =>
    (await service.call("GET", `/v1/plans?${query}`, { key: who })).body;
  const first = await list("agent_id=lister&limit=2");
  assert.deepEqual(
    first.plans.map((plan: any) => plan.id),
    made.slice(0, 2),
  );
  const [, plan] = first.plans;
  assert.deepEqual([plan.ordered, plan.submitted_by, statuses(plan)], [true, id, ["pending_approval", "allowed"]]);
  const rest = await list(`agent_id=lister&limit=2&cursor=${first.next_cursor}`);
  assert.deepEqual([rest.plans.map((each: any) => each.id), rest.next_cursor], [made.slice(2), null]);
  assert.equal((await list("", key)).plans.length, 3);
  const { key: crm } = await makeKey(service, { name: "nora's other", owner: "nora", preset: "approver" });
  assert.deepEqual((await list("agent_id=lister", crm)).plans, []);
  assert.equal((await list("limit=21")).code, "VALIDATION_FAILED");
  assert.equal((await list("cursor=x")).code, "INVALID_CURSOR");
});

test("a user signs one list with a passkey, and a signature of another list or answer is refused", async () => {
  const grace = await invite(service, { name: "Grace", roles: ["approver"] });
  const sign = async (id: string, said: object): Promise<object> => {
    const { body } = await grace.call("POST", `/v1/plans/${id}/challenge`, said);
    assert.ok(body.options !== undefined, JSON.stringify(body));
    return { nonce: body.nonce, response: grace.passkey.get(body.options) };
  };
  const send = (id: string, body: object): Promise<Answer> =>
    grace.call("POST", `/v1/plans/${id}/signed-approval`, body);
  const plan = await submit(["signed", "ask", "signed"]);
  assert.equal((await read(plan.id)).signature_required, true);
  assert.equal(code(await answer(plan.id)), "VOTE_SIGNATURE_REQUIRED");
  const said = { approve: true, reason: "fine", strikes: [{ position: 2, reason: "no" }] };
  for (const other of [
    { approve: true, reason: "fine" },
    { ...said, reason: "other" },
    { approve: false, reason: "fine" },
    { ...said, strikes: [{ position: 1, reason: "no" }] },
  ])
    assert.equal(code(await send(plan.id, { ...other, ...(await sign(plan.id, said)) })), "VOTE_SIGNATURE_INVALID");
  const other = await submit(["signed", "ask", "signed"]);
  assert.equal(code(await send(other.id, { ...said, ...(await sign(plan.id, said)) })), "VOTE_SIGNATURE_INVALID");
  const late = await sign(plan.id, said);
  await post(`/v1/actions/${plan.actions[2].id}/cancel`, agent);
  assert.equal(code(await send(plan.id, { ...said, ...late })), "VOTE_SIGNATURE_INVALID", "the list has changed");
  const { body } = await send(plan.id, { ...said, ...(await sign(plan.id, said)) });
  assert.deepEqual(statuses(body), ["approved", "denied", "cancelled"]);
  assert.equal(code(await start(plan, 0)), "executing");
});

/** Ways to run an action of a plan that nobody approved. */
const ways: [string, () => Promise<void>][] = [
  [
    "a link or a signed vote on one action",
    async () => {
      const grace = await invite(service, { name: "Gil", roles: ["approver"] });
      const plan = await submit(["ask", "ask"]);
      const [{ id: action_id }] = plan.actions;
      const { nonce, votes, response } = await signature(grace, [{ action_id, approve: true }]);
      assert.equal(code(await grace.call("POST", "/v1/votes", { nonce, votes, response })), "PLAN_VOTE_REQUIRED");
      const { approval_token: token } = (await grace.call("GET", `/v1/actions/${action_id}`)).body;
      const body = { token, approve: true, break_glass: true, reason: "now" };
      assert.notEqual((await grace.call("POST", `/v1/actions/${action_id}/approval`, body)).status, 200);
      assert.equal(code(await start(plan, 0)), "ACTION_NOT_STARTABLE");
    },
  ],
  [
    "the token of another approver, or of another plan",
    async () => {
      const [plan, other] = [await submit(["ask"]), await submit(["ask"])];
      const [own, foreign] = [(await read(other.id)).approval_token, (await read(plan.id, eve)).approval_token];
      const vote = (token: string): Promise<Answer> =>
        post(`/v1/plans/${plan.id}/approval`, bob, { token, approve: true });
      assert.equal(code(await vote(own)), "TOKEN_OTHER_ACTION");
      assert.equal(code(await vote(foreign)), "TOKEN_OTHER_APPROVER");
      const { approval_token } = (await service.call("GET", `/v1/actions/${plan.actions[0].id}`, { key: bob })).body;
      assert.equal(code(await vote(approval_token)), "TOKEN_MALFORMED");
    },
  ],
  [
    "the same request outside of the plan, joined and started out of order",
    async () => {
      const plan = await submit(["ask", "read"], { ordered: true });
      await answer(plan.id);
      const { params } = plan.actions[1];
      const joined = await service.call("POST", "/v1/actions?join=open", {
        key: agent,
        body: step("read", { params }),
        headers: { prefer: "permit" },
      });
      assert.equal(joined.body.id, plan.actions[1].id);
      assert.equal(joined.body.permit, null);
      assert.equal(code(await start(plan, 1)), "PLAN_WAITING");
    },
  ],
  [
    "a permit from before the list changed",
    async () => {
      const plan = await submit(["ask", "ask"]);
      await answer(plan.id);
      const { permit } = (await post(`/v1/actions/${plan.actions[1].id}/permit`, agent)).body;
      await post(`/v1/actions/${plan.actions[0].id}/cancel`, service.admin);
      assert.equal(code(await start(plan, 1, { permit })), "MORE_APPROVALS_NEEDED");
      await answer(plan.id);
      assert.equal(code(await start(plan, 1, { permit })), "PERMIT_INVALID", "also after another approval");
    },
  ],
  [
    "the twin of an approved request",
    async () => {
      const twin = step("twin");
      const plan = (await post("/v1/plans", agent, { actions: [twin, twin] })).body;
      await answer(plan.id, bob, { strikes: [{ position: 2 }] });
      assert.equal(code(await start(plan, 0)), "executing");
      assert.equal(code(await start(plan, 1)), "ACTION_NOT_STARTABLE");
      assert.equal(code(await start(plan, 0)), "ACTION_NOT_STARTABLE");
    },
  ],
  [
    "an action behind one that expired",
    async () => {
      const plan = await submit(["ask", "read"], { stop_on_failure: true });
      service.clock.now += 8 * 86_400_000;
      const fresh = await submit(["ask", "read"], { ordered: true });
      assert.notEqual((await start(plan, 1)).status, 200);
      assert.equal((await read(plan.id)).stopped.status, "expired");
      assert.equal(code(await start(fresh, 1)), "PLAN_WAITING");
    },
  ],
  [
    "a repeated start after the list changed",
    async () => {
      const plan = await submit(["ask", "ask"]);
      await answer(plan.id);
      const attempt = "attempt-0123456789";
      assert.equal(code(await start(plan, 1, { attempt })), "executing");
      await post(`/v1/actions/${plan.actions[0].id}/cancel`, service.admin);
      assert.equal(code(await start(plan, 1, { attempt })), "MORE_APPROVALS_NEEDED");
    },
  ],
  [
    "a rejection by itself between two votes of a quorum",
    async () => {
      const plan = await submit(["twice", "ask"]);
      await answer(plan.id, bob);
      const [, second] = plan.actions;
      await post(`/v1/actions/${second.id}/cancel`, service.admin);
      assert.deepEqual(statuses((await answer(plan.id, eve)).body), ["pending_approval", "cancelled"]);
      assert.deepEqual(statuses((await answer(plan.id, bob)).body), ["approved", "cancelled"]);
    },
  ],
  [
    "two strikes and an approval at once",
    async () => {
      const plan = await submit(["ask", "ask", "ask"]);
      const tokens = [(await read(plan.id, bob)).approval_token, (await read(plan.id, eve)).approval_token];
      const said = [{ strikes: [{ position: 1 }] }, { strikes: [{ position: 2 }] }];
      const votes = await Promise.all(
        [bob, eve].map((key, i) =>
          post(`/v1/plans/${plan.id}/approval`, key, { token: tokens[i], approve: true, ...said[i] }),
        ),
      );
      const won = votes.findIndex(({ status }) => status === 200);
      assert.deepEqual(votes.map(({ status }) => status).sort(), [200, 403]);
      const expected = ["approved", "approved", "approved"];
      expected[won] = "denied";
      assert.deepEqual(statuses(await read(plan.id)), expected);
    },
  ],
  [
    "a policy that changed between the vote and the start",
    async () => {
      const plan = await submit(["ask", "ask"]);
      await answer(plan.id);
      const rules = [{ name: "no", tool: "db", operation: "ask", effect: "deny" }];
      const body = { policy: "later", rules };
      const stored = await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body });
      assert.equal(stored.status, 201, JSON.stringify(stored.body));
      assert.equal(code(await start(plan, 0)), "NO_LONGER_ALLOWED");
      assert.equal((await service.call("POST", "/v1/policies/later/deactivate", { key: service.admin })).status, 200);
      assert.equal(code(await start(plan, 1)), "MORE_APPROVALS_NEEDED", "the list has changed");
    },
  ],
];
for (const [way, attempt] of ways) test(`nothing runs through ${way}`, attempt);
