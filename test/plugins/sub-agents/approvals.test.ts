/**
 * Approvals, rejections and pinned facts under an authority apply to each agent of the chain.
 * @needs users
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buildPolicySet, compilePolicySet } from "../../../src/domain/policy/compile/compile.ts";
import { decideForEntry } from "../../../src/domain/policy/decide/decide.ts";
import { Evaluation } from "../../../src/domain/policy/decide/evaluation.ts";
import { parsePolicies } from "../../../src/domain/policy/parse/parse.ts";
import type { Facts } from "../../../src/domain/policy/policy-types.ts";
import { definePlugin, type FactSource } from "../../../src/plugin.ts";
import { startPeople } from "../../support/people.ts";
import { approve, makeKey, person, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: chain
facts:
  account: { source: bank, with: { of: agent }, schema: { type: object, properties: { total: { type: integer } } } }
rules:
  - { name: outside, agent: boss, tool: outside, effect: require_approval, approval: { exclude_requester_groups: true } }
  - { name: ask, agent: boss, tool: ask, effect: require_approval }
  - { name: pinned, tool: pinned, effect: require_approval, approval: { pins: [facts.account.total] } }
  - { name: rest, effect: allow }
`;
const totals: Record<string, number> = {};
const bank: FactSource = {
  name: "bank",
  inputs: ["of"],
  read: ({ of }) => Promise.resolve({ total: totals[String(of)] ?? 7 } as never),
};

let service: Service;
let authority: string;
const keys = {} as Record<"boss" | "worker" | "carol" | "dora" | "erin" | "frank", string>;
let n = 0;

before(async () => {
  service = await startPeople({
    policy: POLICY,
    plugins: [
      { plugin: definePlugin({ name: "bank", setup: () => ({ factSources: [bank] }) }), options: {}, origin: "bank" },
    ],
    change(config) {
      config.agents = "bound";
      config.approvals.trust_key_makers = true;
      config.groups = {
        family: { members: [person("alice"), person("dora")] },
        crew: { members: [person("bob"), person("carol")] },
        desk: { members: [person("erin")], agents: ["worker*"] },
        rest: { members: [person("frank")] },
      };
    },
  });
  for (const name of ["carol", "dora", "erin", "frank"] as const)
    keys[name] = (await makeKey(service, { name, preset: "approver", owner: name })).key;
  for (const [name, owner] of [
    ["boss", "alice"],
    ["worker", "bob"],
  ] as const)
    keys[name] = (await makeKey(service, { name, preset: "agent", agent_id: name, owner })).key;
  const body = { agent_id: "worker", tools: ["*"], for: "2h" };
  const given = await service.call("POST", "/v1/authorities", { key: keys.boss, body });
  assert.equal(given.status, 201, JSON.stringify(given.body));
  authority = given.body.id;
});
after(() => service.close());

const submit = async (
  agent_id: "boss" | "worker",
  tool: string,
  params: object = { n: ++n },
): Promise<Answer["body"]> => {
  const under = agent_id === "worker" ? { authority } : {};
  const body = { agent_id, tool, operation: "run", params, ...under };
  return (await service.call("POST", "/v1/actions", { key: keys[agent_id], body })).body;
};

test("an approver outside the requester's groups shares no group with the person behind any agent of the chain", async () => {
  const { id, status } = await submit("worker", "outside");
  assert.equal(status, "pending_approval");
  await assert.rejects(approve(service, id, keys.dora), /APPROVER_NOT_ELIGIBLE/, "a group of the boss's owner");
  await assert.rejects(approve(service, id, keys.carol), /APPROVER_NOT_ELIGIBLE/, "a group of the worker's owner");
  await approve(service, id, keys.frank);
});

test("an approver whose groups cover only the agent that acts cannot approve what an agent above must ask", async () => {
  const { id } = await submit("worker", "ask");
  await assert.rejects(approve(service, id, keys.erin), /APPROVER_NOT_ELIGIBLE/);
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key: keys.erin });
  assert.equal(body.status, "pending_approval");
  await approve(service, id, keys.carol);
});

test("a rejected request of an agent above is not asked again through the agent under it", async () => {
  const params = { n: ++n };
  const { id } = await submit("boss", "ask", params);
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key: keys.carol });
  const vote = { approve: false, token: body.approval_token };
  const rejected = await service.call("POST", `/v1/actions/${id}/approval`, { key: keys.carol, body: vote });
  assert.equal(rejected.status, 200);
  const again = await submit("worker", "ask", params);
  assert.deepEqual([again.status, again.reason_code], ["denied", "EARLIER_REJECTION"]);
  assert.equal((await submit("worker", "ask")).status, "pending_approval");
});

test("a pinned fact that has another value for an agent above denies, and denies the start if it changes later", async () => {
  const { id, status } = await submit("worker", "pinned");
  assert.equal(status, "pending_approval");
  await approve(service, id, keys.carol);
  totals["boss"] = 8;
  const start = await service.call("POST", `/v1/actions/${id}/start`, { key: keys.worker, body: {} });
  assert.equal(start.body.code, "NO_LONGER_ALLOWED", JSON.stringify(start.body));
  const other = await submit("worker", "pinned");
  assert.deepEqual([other.status, other.reason_code], ["denied", "CONDITION_ERROR"]);
});

test("a replay decides the same if an agent above must ask what a suggested policy allows the agent", () => {
  const { documents, faults } = parsePolicies(
    `policy: base
rules:
  - { name: big, tool: pay, effect: require_approval, approval: { quorum: 2 } }
---
policy: found
suggested: { in_place_of: { policy: base, rule: big } }
rules:
  - { name: as decided, tool: pay, operation: once, agent: [worker], when: "true", effect: allow }
`,
    "p.yaml",
  );
  assert.deepEqual(faults, []);
  const set = compilePolicySet(
    buildPolicySet(documents.map((definition) => ({ policy: definition.policy, version: 1, definition }))),
  );
  const request = { agent_id: "worker", tool: "pay", operation: "once", params: {}, context: {} };
  const principal = { key_id: "k", name: "k", agent_id: null, owner: null };
  const terms = { tools: ["*"], operations: ["*"], condition: null, count: null, sum: null, session: null };
  const key = { key_id: "k", owner: null, principal: "key:k", agent_id: "boss" };
  const link = { id: "a", ...key, ...terms, created_at: "2026-01-01T00:00:00Z", until: "2026-01-02T00:00:00Z" };
  const facts: Facts = {
    principal,
    suggested: ["found"],
    authority: { id: "a", fault: null, links: [link] },
    delegators: [{ principal }],
  };
  const now = Date.parse("2026-01-01T12:00:00Z");
  const decided = decideForEntry(new Evaluation(set, request, facts, now), facts);
  assert.equal(decided.decision.effect, "require_approval", decided.decision.reason);
  const again = decideForEntry(new Evaluation(set, request, decided.facts, now), decided.facts);
  assert.deepEqual(again.decision, decided.decision);
});
