/**
 * Authorities of sub-agents: what they cover, that every link of the chain must allow an action at every decision, and
 * what ends them.
 * @needs grants, plans, stop, throttle, users, replay
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { auditStore } from "../../../src/testing/index.ts";
import { startPeople } from "../../support/people.ts";
import { approve, makeKey, person, setSection, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules:
  - { name: boss never, agent: "boss*", tool: bank, operation: pay, when: 'params.amount > 1000', effect: deny, reason: too much }
  - name: boss asks
    agent: "boss*"
    tool: bank
    operation: pay
    when: 'params.amount > 100'
    effect: require_approval
    approval: { grants: { for: 8h, count: 50 } }
  - { name: pay, tool: bank, operation: pay, effect: allow }
  - { name: boss once, agent: "boss*", tool: bank, operation: once, effect: allow, effect_key: { key: "once/{params.order}", within: 1h } }
  - { name: once, tool: bank, operation: once, effect: allow }
  - { name: metered, tool: bank, operation: metered, effect: allow }
  - { name: worker reads, agent: "worker*", tool: crm, operation: read, effect: allow }
  - { name: boss sends, agent: "boss*", tool: mail, operation: send, effect: allow }
  - { name: send, tool: mail, operation: send, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
  - { name: boss transfers, agent: "boss*", tool: bank, operation: transfer, risk: critical, effect: require_approval }
  - { name: transfer, tool: bank, operation: transfer, risk: low, effect: require_approval }
  - { name: ask, operation: ask, effect: require_approval, approval: { grants: { for: 8h, count: 50 } } }
limits:
  - { name: three, tool: bank, operation: metered, per: agent, count: 3, window: 1h }
`;

let service: Service;
let carol: string;
let alice: string;
let n = 0;

interface Agent {
  name: string;
  key: string;
  id: string;
}

before(async () => {
  service = await startPeople({
    policy: POLICY,
    change(config) {
      config.agents = "bound";
      config.approvals.trust_key_makers = true;
      config.groups = { all: { members: [person("carol"), person("alice"), person("bob")] } };
      setSection(config, "throttle", { times: 2, minimum: 3 });
    },
  });
  carol = (await makeKey(service, { name: "carol", preset: "approver", owner: "carol" })).key;
  alice = (await makeKey(service, { name: "alice", preset: "approver", owner: "alice" })).key;
});
after(() => service.close());

async function agent(kind: string, owner = kind.startsWith("boss") ? "alice" : "bob"): Promise<Agent> {
  const name = `${kind}-${++n}`;
  return { name, ...(await makeKey(service, { name, preset: "agent", agent_id: name, owner })) };
}
const give = (from: Agent, to: Agent, more: object = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/authorities", {
    key: from.key,
    headers,
    body: { agent_id: to.name, tools: ["*"], ...("parent" in more ? {} : { for: "2h" }), ...more },
  });
async function given(from: Agent, to: Agent, more: object = {}): Promise<string> {
  const answer = await give(from, to, more);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.id;
}
const submit = (who: Agent, more: object = {}, { path = "/v1/actions", headers = {} } = {}): Promise<Answer> =>
  service.call("POST", path, {
    key: who.key,
    headers,
    body: { agent_id: who.name, tool: "bank", operation: "pay", params: { amount: 10, n: ++n }, ...more },
  });
const pay = (who: Agent, authority: string | undefined, amount: number): Promise<Answer> =>
  submit(who, { params: { amount, n: ++n }, ...(authority === undefined ? {} : { authority }) });
const outcome = ({ body }: Answer): string[] => [body.status ?? body.code, body.reason_code];
const end = (id: string, key: string): Promise<Answer> => service.call("DELETE", `/v1/authorities/${id}`, { key });
const read = async (id: string, key = carol): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}`, { key })).body;
const start = (who: Agent, id: string): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/start`, { key: who.key, body: {} });

describe("every link must allow", () => {
  test("an action is decided for the agent and for each agent above it, whatever the agent alone may do", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const first = await given(boss, worker);
    const second = await given(worker, sub, { parent: first });
    for (const [who, authority] of [
      [worker, first],
      [sub, second],
    ] as const) {
      assert.deepEqual(outcome(await pay(who, authority, 10)), ["allowed", "POLICY_RULE"]);
      assert.deepEqual(outcome(await pay(who, authority, 500)), ["pending_approval", "POLICY_RULE"]);
      assert.deepEqual(outcome(await pay(who, authority, 5000)), ["denied", "POLICY_RULE"]);
      assert.deepEqual(outcome(await pay(who, undefined, 5000)), ["allowed", "POLICY_RULE"]);
    }
    const denied = (await pay(sub, second, 5000)).body;
    assert.match(denied.reason, new RegExp(`for "${boss.name}", which gave the authority: too much`));
    assert.equal(denied.rule, "boss never");
    // The risk decides how the action may be approved, so the highest of the chain counts.
    const transfer = { tool: "bank", operation: "transfer" };
    assert.equal((await submit(sub, transfer)).body.risk_level, "low");
    assert.equal((await submit(sub, { ...transfer, authority: second })).body.risk_level, "critical");
    // The boss may not read, so the worker may not read for it; and the sub-agent may not, whoever asks.
    const reading = { tool: "crm", operation: "read" };
    assert.equal((await submit(worker, reading)).body.status, "allowed");
    assert.deepEqual(outcome(await submit(worker, { ...reading, authority: first })), ["denied", "NO_MATCHING_RULE"]);
    assert.deepEqual(outcome(await submit(sub, { ...reading, authority: second })), ["denied", "NO_MATCHING_RULE"]);
  });

  test("an authority adds no rights: what the agent's own policies ask is asked", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker);
    const sending = { tool: "mail", operation: "send" };
    assert.equal((await submit(boss, sending)).body.status, "allowed");
    assert.equal((await submit(worker, { ...sending, authority: id })).body.status, "pending_approval");
  });

  test("limits of an agent above count what the agents under it do", async () => {
    const [boss, one, two] = [await agent("boss"), await agent("one"), await agent("two")];
    const metered = { operation: "metered" };
    const [a, b] = [await given(boss, one), await given(boss, two)];
    assert.equal((await submit(one, { ...metered, authority: a })).body.status, "allowed");
    assert.equal((await submit(two, { ...metered, authority: b })).body.status, "allowed");
    assert.equal((await submit(boss, metered)).body.status, "allowed");
    assert.deepEqual(outcome(await submit(boss, metered)), ["denied", "LIMIT_EXCEEDED"]);
    assert.deepEqual(outcome(await submit(two, { ...metered, authority: b })), ["denied", "LIMIT_EXCEEDED"]);
    assert.equal((await submit(two, metered)).body.status, "allowed");
  });

  test("a suspended, stopped, throttled or deactivated agent above, or its revoked key, denies with its own code", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker);
    const stop = { agent: boss.name, reason: "drill" };
    const { body: placed } = await service.call("POST", "/v1/stop", { key: service.admin, body: stop });
    assert.deepEqual(outcome(await pay(worker, id, 10)), ["denied", "STOPPED"]);
    assert.equal((await pay(worker, undefined, 10)).body.status, "allowed");
    const lift = await service.call("POST", `/v1/stop/${placed.id}/lift`, {
      key: service.admin,
      body: { reason: "over" },
    });
    assert.equal(lift.status, 200, JSON.stringify(lift.body));
    assert.equal((await pay(worker, id, 10)).body.status, "allowed");
    await service.call("DELETE", `/v1/api-keys/${boss.id}`, { key: service.admin });
    assert.deepEqual(outcome(await pay(worker, id, 10)), ["denied", "KEY_ENDED"]);
    const [other, helper] = [await agent("boss"), await agent("helper")];
    const top = await given(other, worker);
    const below = await given(worker, helper, { parent: top });
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: other.name } });
    const suspended = await service.call("POST", `/v1/agents/${other.name}/suspend`, {
      key: service.admin,
      body: { reason: "odd" },
    });
    assert.equal(suspended.status, 200, JSON.stringify(suspended.body));
    for (const [who, authority] of [
      [worker, top],
      [helper, below],
    ] as const)
      assert.deepEqual(outcome(await pay(who, authority, 10)), ["denied", "AUTHORITY_ENDED"]);
    await service.call("POST", `/v1/agents/${other.name}/resume`, { key: service.admin });
    assert.deepEqual(outcome(await pay(helper, below, 10)), ["denied", "AUTHORITY_ENDED"], "trust does not come back");
  });

  test("the allowed tools of an agent above apply", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker);
    const registration = { id: boss.name, allowed_tools: ["mail"] };
    const added = await service.call("POST", "/v1/agents", { key: service.admin, body: registration });
    assert.equal(added.status, 201, JSON.stringify(added.body));
    assert.deepEqual(outcome(await pay(worker, id, 10)), ["denied", "TOOL_NOT_ALLOWED"]);
  });

  test("a throttled agent above holds back requests for approval under it", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker, { for: "20h" });
    const HOUR = 3_600_000;
    const nextHour = (): void => {
      service.clock.now += HOUR - ((Date.now() + service.clock.now) % HOUR) + 1000;
    };
    for (const _ of [1, 2, 3]) {
      nextHour();
      assert.equal((await submit(boss, { operation: "ask" })).status, 202);
    }
    nextHour();
    for (const _ of [1, 2, 3]) assert.equal((await submit(boss, { operation: "ask" })).status, 202);
    assert.equal((await submit(boss, { operation: "ask" })).body.code, "AGENT_THROTTLED");
    assert.equal((await submit(worker, { operation: "ask", authority: id })).body.code, "AGENT_THROTTLED");
    assert.equal((await submit(worker, { operation: "ask" })).status, 202);
  });
});

describe("the scope", () => {
  test("covers its tools, operations and condition, and nothing else", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker, { tools: ["ba*"], operations: ["pay"], condition: "params.amount <= 50" });
    assert.equal((await pay(worker, id, 50)).body.status, "allowed");
    assert.deepEqual(outcome(await pay(worker, id, 51)), ["denied", "AUTHORITY_EXCEEDED"]);
    assert.deepEqual(outcome(await submit(worker, { authority: id, params: {} })), ["denied", "AUTHORITY_EXCEEDED"]);
    const metered = { operation: "metered", authority: id };
    assert.deepEqual(outcome(await submit(worker, metered)), ["denied", "AUTHORITY_EXCEEDED"]);
    const mail = { tool: "mail", operation: "send", authority: id };
    assert.deepEqual(outcome(await submit(worker, mail)), ["denied", "AUTHORITY_EXCEEDED"]);
  });

  test("each link's scope applies, even if a later one is wider", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const top = await given(boss, worker, { condition: "params.amount <= 50" });
    const id = await given(worker, sub, { parent: top, condition: "params.amount <= 90" });
    assert.equal((await pay(sub, id, 50)).body.status, "allowed");
    assert.deepEqual(outcome(await pay(sub, id, 60)), ["denied", "AUTHORITY_EXCEEDED"]);
  });

  test("counts and sums count over the whole tree, for concurrent requests, too", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const top = await given(boss, worker, { limits: { count: 5, sum: { of: "params.amount", at_most: 100 } } });
    const ids = await Promise.all([1, 2, 3].map(() => given(worker, sub, { parent: top, limits: { count: 3 } })));
    const answers = await Promise.all([...ids, ...ids, ...ids].map((id) => pay(sub, id, 10)));
    assert.equal(answers.filter(({ body }) => body.status === "allowed").length, 5);
    assert.deepEqual(outcome(await pay(worker, top, 1)), ["denied", "AUTHORITY_EXCEEDED"]);
    const summed = await given(boss, worker, { limits: { sum: { of: "params.amount", at_most: 100 } } });
    const below = await given(worker, sub, { parent: summed });
    assert.equal((await pay(sub, below, 60)).body.status, "allowed");
    assert.deepEqual(outcome(await pay(worker, summed, 41)), ["denied", "AUTHORITY_EXCEEDED"]);
    assert.equal((await pay(worker, summed, 40)).body.status, "allowed");
  });
});

describe("what fails closed", () => {
  test("unknown, foreign, ended and expired authorities deny with a stable code", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const id = await given(boss, worker, { for: "30m" });
    assert.deepEqual(outcome(await pay(worker, "nothing", 10)), ["denied", "AUTHORITY_UNKNOWN"]);
    assert.deepEqual(outcome(await pay(sub, id, 10)), ["denied", "AUTHORITY_UNKNOWN"], "made for another agent");
    assert.deepEqual(outcome(await pay(boss, id, 10)), ["denied", "AUTHORITY_UNKNOWN"], "not for its giver");
    const ended = await given(boss, worker);
    assert.equal((await end(ended, boss.key)).body.status, "ended");
    assert.deepEqual(outcome(await pay(worker, ended, 10)), ["denied", "AUTHORITY_ENDED"]);
    service.clock.now += 31 * 60_000;
    assert.deepEqual(outcome(await pay(worker, id, 10)), ["denied", "AUTHORITY_ENDED"]);
    assert.equal((await give(worker, sub, { parent: id, for: "1m" })).body.code, "AUTHORITY_ENDED");
  });

  test("an approved action under an authority that ended cannot start, and gets no permit", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const top = await given(boss, worker);
    const id = await given(worker, sub, { parent: top });
    const waiting = (await pay(sub, id, 500)).body;
    const approved = (await pay(sub, id, 501)).body;
    await approve(service, approved.id, carol);
    const allowed = (await pay(sub, id, 10)).body;
    const free = (await pay(sub, undefined, 10)).body;
    assert.equal((await end(top, boss.key)).status, 200);
    for (const { id: action } of [waiting, approved, allowed]) {
      assert.equal((await read(action)).status, "cancelled");
      assert.notEqual((await start(sub, action)).status, 200);
      assert.notEqual(
        (await service.call("POST", `/v1/actions/${action}/permit`, { key: sub.key, body: {} })).status,
        200,
      );
    }
    assert.equal((await start(sub, free.id)).status, 200, "other actions of the agent go on");
    assert.deepEqual(
      (await service.call("GET", `/v1/authorities?root=${top}`, { key: carol })).body.authorities.map(
        ({ status, ended }: Answer["body"]) => [status, ended.cause],
      ),
      [
        ["ended", "parent"],
        ["ended", "revoked"],
      ],
    );
  });

  test("an open action whose authority ended with a suspension neither gets approved nor starts, even after the agent is resumed", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const top = await given(boss, worker);
    const id = await given(worker, sub, { parent: top });
    const [waiting, allowed, later] = [await pay(sub, id, 500), await pay(sub, id, 10), await pay(sub, id, 11)];
    const approved = await pay(worker, top, 501);
    await approve(service, approved.body.id, carol);
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: boss.name } });
    const suspend = { key: service.admin, body: { reason: "odd" } };
    assert.equal((await service.call("POST", `/v1/agents/${boss.name}/suspend`, suspend)).status, 200);
    assert.equal((await start(sub, later.body.id)).body.code, "NO_LONGER_ALLOWED");
    await service.call("POST", `/v1/agents/${boss.name}/resume`, { key: service.admin });
    await assert.rejects(approve(service, waiting.body.id, carol), /NO_LONGER_ALLOWED/);
    const permit = `/v1/actions/${allowed.body.id}/permit`;
    assert.notEqual((await service.call("POST", permit, { key: sub.key, body: {} })).status, 200);
    for (const [who, { body }] of [
      [sub, waiting],
      [sub, allowed],
      [worker, approved],
    ] as const)
      assert.notEqual((await start(who, body.id)).status, 200);
    for (const { body } of [waiting, allowed, later, approved]) assert.equal((await read(body.id)).status, "denied");
  });

  test("a start and a permit decide each link again: an agent above that lost its key, tool or limit", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker);
    const [first, second, third] = [await pay(worker, id, 10), await pay(worker, id, 11), await pay(worker, id, 500)];
    await approve(service, third.body.id, carol);
    assert.equal((await start(worker, first.body.id)).status, 200);
    await service.call("DELETE", `/v1/api-keys/${boss.id}`, { key: service.admin });
    for (const { body } of [second, third]) {
      const refused = await start(worker, body.id);
      assert.equal(refused.body.code, "NO_LONGER_ALLOWED", JSON.stringify(refused.body));
    }
  });

  test("a stop of an agent above holds an approved action until it is lifted", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker);
    const { body } = await pay(worker, id, 10);
    const stop = { agent: boss.name, reason: "drill" };
    const placed = await service.call("POST", "/v1/stop", { key: service.admin, body: stop });
    assert.equal((await start(worker, body.id)).body.code, "STOPPED");
    await service.call("POST", `/v1/stop/${placed.body.id}/lift`, { key: service.admin, body: { reason: "over" } });
    assert.equal((await start(worker, body.id)).status, 200);
  });

  test("previews, plans, joins and idempotency keys decide under the named authority", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker, { condition: "params.amount <= 500" });
    const gate = { path: "/v1/gate/decide" };
    const params = { amount: 5000 };
    assert.equal((await submit(worker, { params }, gate)).body.decision, "allow");
    assert.equal((await submit(worker, { params, authority: id }, gate)).body.decision, "deny");
    const plan = (authority: object): Promise<Answer> =>
      service.call("POST", "/v1/plans", {
        key: worker.key,
        headers: { "idempotency-key": `plan-${worker.name}` },
        body: { actions: [{ agent_id: worker.name, tool: "bank", operation: "pay", params, ...authority }] },
      });
    assert.equal((await plan({ authority: id })).body.actions[0].status, "denied");
    assert.equal((await plan({ authority: id })).body.actions[0].status, "denied");
    assert.equal((await plan({})).body.code, "IDEMPOTENCY_CONFLICT");
    const once = { headers: { "idempotency-key": `one-${worker.name}` } };
    assert.equal((await submit(worker, { params, authority: id }, once)).body.status, "denied");
    assert.equal((await submit(worker, { params, authority: id }, once)).body.status, "denied");
    assert.equal((await submit(worker, { params }, once)).body.code, "IDEMPOTENCY_CONFLICT");
    const join = { path: "/v1/actions?join=open" };
    const under = (await submit(worker, { params: { amount: 300 }, authority: id }, join)).body;
    const again = await submit(worker, { params: { amount: 300 }, authority: id }, join);
    assert.deepEqual([under.status, again.body.id], ["pending_approval", under.id]);
    const free = (await submit(worker, { params: { amount: 300 } }, join)).body;
    assert.deepEqual([free.status, free.id === under.id], ["allowed", false]);
  });

  test("a grant for an agent above covers nothing, and one for the agent lifts only what its own policies ask", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker);
    const grant = async (agent_id: string, tool: string, operation: string): Promise<void> => {
      const body = { agent_id, tool, operation, count: 20, for: "1h" };
      const answer = await service.call("POST", "/v1/grants", { key: carol, body });
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
    };
    await grant(boss.name, "bank", "pay");
    await grant(boss.name, "bank", "ask");
    await grant(worker.name, "mail", "send");
    await grant(worker.name, "bank", "ask");
    assert.equal((await pay(boss, undefined, 500)).body.status, "allowed");
    assert.equal((await pay(worker, id, 500)).body.status, "pending_approval");
    assert.equal(
      (await submit(worker, { tool: "mail", operation: "send", authority: id })).body.reason_code,
      "GRANTED",
    );
    assert.equal((await submit(worker, { operation: "ask" })).body.status, "allowed");
    assert.equal((await submit(worker, { operation: "ask", authority: id })).body.status, "pending_approval");
  });

  test("the person behind an agent above cannot approve what is done for it", async () => {
    const [boss, worker] = [await agent("boss", "alice"), await agent("worker", "bob")];
    const id = await given(boss, worker);
    const { body } = await pay(worker, id, 500);
    await assert.rejects(approve(service, body.id, alice), /SELF_APPROVAL|approval/);
    assert.equal((await read(body.id)).status, "pending_approval");
    await approve(service, body.id, carol);
    assert.equal((await start(worker, body.id)).status, 200);
  });
});

test("a denial because of an effect of an agent above does not name that agent's action", async () => {
  const [boss, worker] = [await agent("boss"), await agent("worker")];
  const id = await given(boss, worker);
  const once = { operation: "once", params: { order: `o-${worker.name}` } };
  const first = (await submit(boss, once)).body;
  assert.equal(first.status, "allowed");
  assert.match((await submit(boss, once)).body.reason, new RegExp(first.id), "its own agent can see it");
  const denied = (await submit(worker, { ...once, authority: id })).body;
  assert.equal(denied.reason_code, "EFFECT_REPEATED");
  assert.doesNotMatch(denied.reason, new RegExp(first.id));
});

describe("the chain is visible", () => {
  test("in the action, in its entry and in its permit", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const top = await given(boss, worker);
    const id = await given(worker, sub, { parent: top });
    const { body } = await submit(sub, { authority: id }, { headers: { prefer: "permit" } });
    const act = { sub: sub.name, act: { sub: worker.name, act: { sub: boss.name } } };
    assert.deepEqual([body.chain.authority, body.chain.act], [id, act]);
    assert.deepEqual(
      body.chain.links.map(({ id: link, agent_id, owner }: Answer["body"]) => [link, agent_id, owner]),
      [
        [top, boss.name, person("alice")],
        [id, worker.name, person("bob")],
      ],
    );
    const claims = JSON.parse(Buffer.from(body.permit.split(".")[1], "base64url").toString());
    assert.deepEqual([claims.authority, claims.act], [id, act]);
    const started = await service.call("POST", `/v1/actions/${body.id}/start`, {
      key: sub.key,
      body: { permit: body.permit },
    });
    assert.equal(started.status, 200, JSON.stringify(started.body));
    const events = await service.call("GET", `/v1/actions/${body.id}/events`, { key: carol });
    assert.match(JSON.stringify(events.body), new RegExp(top));
  });

  test("a replay of decisions under authorities gives the same decisions", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const authority = await given(boss, worker, { limits: { count: 3 } });
    const asked = (await pay(worker, authority, 500)).body;
    await approve(service, asked.id, carol);
    await start(worker, asked.id);
    for (const { id } of [asked, (await pay(worker, authority, 10)).body, (await pay(worker, authority, 5000)).body]) {
      const { body } = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } });
      assert.equal(body.equal, true, JSON.stringify(body));
    }
  });
});

describe("giving", () => {
  test("only an agent gives, to another agent, at most what it provably has, and it ends", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    const code = async (answer: Promise<Answer>): Promise<string> => (await answer).body.code;
    const unbound = await makeKey(service, { name: "free", preset: "agent", owner: "bob" });
    assert.equal(await code(give({ ...boss, key: unbound.key }, worker)), "AGENT_UNBOUND");
    assert.equal(await code(give({ ...boss, key: carol }, worker)), "INSUFFICIENT_SCOPE");
    assert.equal(await code(give(boss, boss)), "VALIDATION_FAILED");
    assert.equal(await code(give(boss, worker, { for: "169h" })), "VALIDATION_FAILED");
    assert.equal(await code(give(boss, worker, { for: undefined })), "VALIDATION_FAILED");
    assert.equal(await code(give(boss, worker, { condition: "params.amount <" })), "VALIDATION_FAILED");
    const top = await given(boss, worker, {
      tools: ["bank", "crm*"],
      operations: ["pay", "read"],
      limits: { count: 5, sum: { of: "params.amount", at_most: 100 } },
    });
    const within = { parent: top, tools: ["bank"], operations: ["pay"], for: "1h" };
    for (const wider of [
      { tools: ["mail"] },
      { tools: ["b*"] },
      { operations: ["*"] },
      { operations: undefined },
      { for: "3h" },
      { limits: { count: 6 } },
      { limits: { sum: { of: "params.amount", at_most: 101 } } },
    ])
      assert.equal(await code(give(worker, sub, { ...within, ...wider })), "AUTHORITY_TOO_WIDE", JSON.stringify(wider));
    assert.equal(await code(give(sub, worker, within)), "AUTHORITY_NOT_FOUND", "of another agent");
    const { body } = await give(worker, sub, { ...within, for: undefined });
    assert.equal(body.until, (await service.call("GET", `/v1/authorities/${top}`, { key: boss.key })).body.until);
    const registration = { id: sub.name, allowed_tools: ["crm"] };
    await service.call("POST", "/v1/agents", { key: service.admin, body: registration });
    assert.equal(await code(give(sub, boss, { tools: ["bank"] })), "AUTHORITY_TOO_WIDE");
  });

  test("a pattern with wildcards is within another only if all names that it covers are", async () => {
    const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
    for (const [own, pattern, expected] of [
      ["b?nk", "b*nk", 403],
      ["?*", "*", 403],
      ["b?*", "b*", 403],
      ["b b??", "b*", 403],
      ["b?k b*nk", "b?nk", 201],
      ["a*", "a?*", 201],
      ["*nk", "b*nk", 201],
      ["bank*", "BANK-?*", 201],
      ["b*", "\u200bbank", 422],
    ] as const) {
      const parent = await given(boss, worker, { tools: own.split(" ") });
      const { status, body } = await give(worker, sub, { parent, tools: [pattern] });
      assert.equal(status, expected, `${own} ${pattern} ${JSON.stringify(body)}`);
    }
  });

  test("a suspended agent has no rights to give", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    await service.call("POST", "/v1/agents", { key: service.admin, body: { id: boss.name } });
    const path = `/v1/agents/${boss.name}`;
    await service.call("POST", `${path}/suspend`, { key: service.admin, body: { reason: "odd" } });
    const refused = await give(boss, worker);
    assert.deepEqual([refused.status, refused.body.code], [403, "AUTHORITY_TOO_WIDE"]);
    assert.match(refused.body.detail, /is suspended, so it has no rights to give/);
    await service.call("POST", `${path}/resume`, { key: service.admin });
    assert.equal((await give(boss, worker)).status, 201);
  });

  test("depth, children and the whole tree are bounded", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    let [from, to, parent] = [boss, worker, await given(boss, worker)];
    for (let depth = 2; depth <= 8; depth++) {
      [from, to] = [to, from];
      parent = await given(from, to, { parent, for: undefined });
    }
    assert.equal((await give(to, from, { parent, for: undefined })).body.code, "TOO_MANY_AUTHORITIES");
    const wide = await agent("boss");
    const top = await given(wide, worker);
    const children: string[] = [];
    for (let i = 0; i < 32; i++) children.push(await given(worker, boss, { parent: top, for: undefined }));
    assert.equal((await give(worker, boss, { parent: top, for: undefined })).body.code, "TOO_MANY_AUTHORITIES");
    await end(children[0] as string, worker.key);
    assert.equal((await give(worker, boss, { parent: top, for: undefined })).status, 201);
    const more = async (): Promise<string> => {
      for (const child of children.slice(1))
        for (let i = 0; i < 32; i++) {
          const { body } = await give(boss, worker, { parent: child, for: undefined });
          if (body.code !== undefined) return `${body.code}: ${body.detail}`;
        }
      return "no limit";
    };
    assert.match(await more(), /TOO_MANY_AUTHORITIES: 64 /);
  });

  test("an agent above and an admin can end it; the agent that has it, and others, cannot", async () => {
    const [boss, worker, sub, other] = [
      await agent("boss"),
      await agent("worker"),
      await agent("sub"),
      await agent("other"),
    ];
    const top = await given(boss, worker);
    const below = (): Promise<string> => given(worker, sub, { parent: top });
    const id = await below();
    assert.equal((await end(id, sub.key)).body.code, "INSUFFICIENT_SCOPE");
    assert.equal((await end(id, other.key)).body.code, "AUTHORITY_NOT_FOUND");
    assert.equal((await service.call("GET", `/v1/authorities/${id}`, { key: other.key })).status, 404);
    assert.equal((await end(id, carol)).body.code, "INSUFFICIENT_SCOPE");
    assert.equal((await end(id, boss.key)).status, 200);
    assert.equal((await end(id, boss.key)).body.code, "AUTHORITY_ENDED");
    assert.equal((await end(await below(), worker.key)).status, 200);
    assert.equal((await end(await below(), service.admin)).status, 200);
    const once = { "idempotency-key": `give-${boss.name}` };
    const [first, again] = [await give(boss, worker, {}, once), await give(boss, worker, {}, once)];
    assert.deepEqual([again.status, again.body.id], [200, first.body.id]);
  });

  test("authorities survive a restart", async () => {
    const [boss, worker] = [await agent("boss"), await agent("worker")];
    const id = await given(boss, worker, { limits: { count: 1 } });
    await service.restart();
    assert.equal((await pay(worker, id, 10)).body.status, "allowed");
    assert.deepEqual(outcome(await pay(worker, id, 10)), ["denied", "AUTHORITY_EXCEEDED"]);
  });
});

test("a cursor that the list did not return is refused", async () => {
  const cursor = Buffer.from("authorities:x").toString("base64url");
  const { status, body } = await service.call("GET", `/v1/authorities?cursor=${cursor}`, { key: carol });
  assert.deepEqual([status, body.code], [422, "INVALID_CURSOR"]);
});

test("the budget of an authority counts the usage of all agents under it, and denies actions when it is used up", async () => {
  const [boss, worker, sub] = [await agent("boss"), await agent("worker"), await agent("sub")];
  const sum = { of: "usage.cost_usd", at_most: 10, reserve: 2 };
  assert.equal((await give(boss, worker, { limits: { sum: { of: sum.of, at_most: 10 } } })).status, 422);
  const top = await given(boss, worker, { limits: { sum } });
  const below = await given(worker, sub, { parent: top });
  const { id } = (await pay(sub, below, 10)).body;
  assert.equal((await service.call("POST", `/v1/actions/${id}/start`, { key: sub.key, body: {} })).status, 200);
  const body = { success: true, usage: { cost_usd: 7 } };
  assert.equal((await service.call("POST", `/v1/actions/${id}/result`, { key: sub.key, body })).status, 200);
  const next = [(await pay(worker, top, 10)).body, (await pay(sub, below, 10)).body];
  assert.deepEqual(
    next.map(({ status, reason_code }) => [status, reason_code]),
    [
      ["allowed", "POLICY_RULE"],
      ["denied", "AUTHORITY_EXCEEDED"],
    ],
  );
});

test("an action that was allowed does not start when the reports of others have used up the budget of its authority", async () => {
  const [boss, worker] = [await agent("boss"), await agent("worker")];
  const sum = { of: "usage.cost_usd", at_most: 10, reserve: 2 };
  const id = await given(boss, worker, { limits: { sum } });
  const [first, second] = [(await pay(worker, id, 10)).body, (await pay(worker, id, 10)).body];
  const start = (action: { id: string }) =>
    service.call("POST", `/v1/actions/${action.id}/start`, { key: worker.key, body: { attempt: action.id } });
  assert.equal((await start(first)).status, 200);
  const body = { success: true, usage: { cost_usd: 9 } };
  assert.equal((await service.call("POST", `/v1/actions/${first.id}/result`, { key: worker.key, body })).status, 200);
  assert.equal((await start(second)).body.code, "NO_LONGER_ALLOWED", "9 + 2");
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});
