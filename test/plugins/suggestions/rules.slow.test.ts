/** Suggested rules: what they allow, what reverts them, and that only a person restores one. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { makeKey, startService, type Answer, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

const POLICY = `policy: work
rules:
  - { name: no, tool: bank, operation: pay, when: 'has(params.forbidden)', effect: deny }
  - { name: critical, tool: bank, operation: pay, when: 'has(params.critical)', risk: critical, effect: require_approval }
  - { name: pay, tool: bank, operation: pay, effect: require_approval }
---
policy: other
rules:
  - { name: both, tool: bank, operation: pay, when: 'has(params.other)', effect: require_approval }
limits:
  - { name: many, tool: bank, operation: pay, when: 'has(params.limited)', per: agent, count: 1, window: 24h, effect: require_approval }
`;

const suggestion = (name: string, agent: string, over: object = {}): object => ({
  policy: name,
  mode: "shadow",
  suggested: { in_place_of: { policy: "work", rule: "pay" }, max_failed: 0.2 },
  rules: [
    {
      name: "as people decided",
      tool: "bank",
      operation: "pay",
      agent: [agent],
      when: "params.amount <= 10",
      effect: "allow",
    },
  ],
  ...over,
});

let service: Service;
let alice: string;
let n = 0;

const admin = (method: string, path: string, body?: object): Promise<Answer> =>
  service.call(method, path, { key: service.admin, ...(body === undefined ? {} : { body }) });
const submit = (agent_id: string, params: object = {}): Promise<Answer> =>
  service.call("POST", "/v1/actions", {
    body: { agent_id, tool: "bank", operation: "pay", params: { amount: 5, n: ++n, ...params } },
  });
const effectOf = async (agent: string, params: object = {}): Promise<string> =>
  (await submit(agent, params)).body.decision;
async function run(agent: string, success: boolean): Promise<string> {
  const { id } = (await submit(agent)).body;
  assert.equal((await service.call("POST", `/v1/actions/${id}/start`, { body: {} })).status, 200);
  assert.equal((await service.call("POST", `/v1/actions/${id}/result`, { body: { success } })).status, 200);
  return id;
}
const flag = (policy: string, action_id: string, key = alice): Promise<Answer> =>
  service.call("POST", `/v1/suggested-rules/${policy}/flag`, { key, body: { action_id, reason: "not this one" } });
const restore = (policy: string, key = service.admin): Promise<Answer> =>
  service.call("POST", `/v1/suggested-rules/${policy}/restore`, { key, body: { reason: "checked with finance" } });
const readRule = async (name: string): Promise<Answer["body"]> =>
  (await admin("GET", "/v1/suggested-rules")).body.suggested_rules.find(
    ({ policy }: { policy: string }) => policy === name,
  );

/** Activates a suggestion for a new agent in shadow mode, and then enforces it. */
async function enforced(over: object = {}): Promise<{ agent: string; policy: string }> {
  const agent = `bot-${++n}`;
  const policy = `suggested-${n}`;
  const shadow = await admin("POST", "/v1/policies?activate=true", suggestion(policy, agent));
  assert.equal(shadow.status, 201, JSON.stringify(shadow.body));
  const answer = await admin(
    "PUT",
    `/v1/policies/${policy}?activate=true`,
    suggestion(policy, agent, { mode: "enforce", ...over }),
  );
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { agent, policy };
}

before(async () => {
  service = await startService({
    policy: POLICY,
    pluginOptions: { "policy-files": { watch: true } },
    change: (config) => (config.approvals.trust_key_makers = true),
  });
  alice = (await makeKey(service, { name: "alice", preset: "approver", owner: "alice" })).key;
});
after(() => service.close());

describe("a suggested rule", () => {
  test(
    "allows actions that its rule would send for approval, and the decision contains the suggested policy",
    needs("replay"),
    async () => {
      const { agent, policy } = await enforced();
      const { body } = await submit(agent);
      assert.deepEqual(
        [body.status, body.decision, body.policy, body.rule],
        ["allowed", "allow", policy, "as people decided"],
      );
      const [event] = (await admin("GET", `/v1/actions/${body.id}/events`)).body.events;
      assert.deepEqual(event.entry.facts.suggested, [policy]);
      assert.equal((await admin("POST", "/v1/replay", { action_id: body.id })).body.equal, true);
    },
  );

  test("does not allow actions that require approval by another rule, a limit or the risk critical, or that are denied", async () => {
    const { agent } = await enforced();
    assert.equal(await effectOf(agent, { amount: 11 }), "require_approval");
    assert.equal(await effectOf(agent, { amount: "5" }), "require_approval");
    assert.equal(await effectOf("stranger"), "require_approval");
    assert.equal(await effectOf(agent, { other: 1 }), "require_approval");
    assert.equal(await effectOf(agent, { critical: 1 }), "require_approval");
    assert.equal(await effectOf(agent, { forbidden: 1 }), "deny");
    assert.deepEqual(
      [await effectOf(agent, { limited: 1 }), await effectOf(agent, { limited: 1 })],
      ["allow", "require_approval"],
    );
  });

  test("allows nothing by itself where no rule requires approval", async () => {
    const { agent } = await enforced({
      rules: [{ name: "alone", tool: "bank", operation: "close", agent: [`bot-${n + 1}`], effect: "allow" }],
    });
    const { body } = await service.call("POST", "/v1/actions", {
      body: { agent_id: agent, tool: "bank", operation: "close" },
    });
    assert.deepEqual([body.decision, body.reason_code], ["deny", "NO_MATCHING_RULE"]);
  });

  test("is enforced only after it was active in shadow mode, which reports what it would have allowed", async () => {
    const agent = `bot-${++n}`;
    const name = `suggested-${n}`;
    const early = await admin("POST", "/v1/policies?activate=true", suggestion(name, agent, { mode: "enforce" }));
    assert.deepEqual([early.status, early.body.code], [409, "SUGGESTED_RULE_UNTRIED"]);
    await admin("POST", "/v1/policies?activate=true", suggestion(name, agent));
    assert.equal(await effectOf(agent), "require_approval");
    assert.equal(await readRule(name), undefined);
    const { body } = await admin("GET", `/v1/policies/${name}/shadow`);
    assert.deepEqual(
      body.flips.map(({ from, to, count }: Answer["body"]) => [from.effect, from.rule, to.effect, to.policy, count]),
      [["require_approval", "pay", "allow", name, 1]],
    );
  });

  test("must name one tool, one operation and its agents, and have one rule", async () => {
    const rule = { name: "r", tool: "bank", operation: "pay", agent: ["a"], effect: "allow" };
    for (const [rules, pointer] of [
      [[{ ...rule, tool: "b*" }], "/rules/0/tool"],
      [[{ ...rule, tool: ["bank"] }], "/rules/0/tool"],
      [[{ ...rule, operation: undefined }], "/rules/0"],
      [[{ ...rule, agent: ["a", "?"] }], "/rules/0/agent"],
      [[{ ...rule, effect: "deny" }], "/rules/0/effect"],
      [[rule, { ...rule, name: "s" }], "/rules"],
    ] as const) {
      const { status, body } = await admin("POST", "/v1/policies", suggestion("broken", "a", { rules }));
      assert.deepEqual([status, body.errors?.[0]?.pointer], [422, pointer], JSON.stringify(body));
    }
  });
});

describe("a reversal", () => {
  test("by a flag requires approval from the response on, including for actions that were allowed and not started", async () => {
    const { agent, policy } = await enforced();
    const [use, open] = [(await submit(agent)).body.id, (await submit(agent)).body.id];
    const answer = await flag(policy, use);
    assert.deepEqual(
      [answer.status, answer.body.status, answer.body.reverted.cause, answer.body.reverted.action_id],
      [200, "reverted", "flag", use],
    );
    assert.equal(await effectOf(agent), "require_approval");
    const start = await service.call("POST", `/v1/actions/${open}/start`, { body: {} });
    assert.deepEqual([start.status, start.body.code], [409, "MORE_APPROVALS_NEEDED"]);
    assert.equal((await flag(policy, use)).body.code, "SUGGESTED_RULE_REVERTED");
  });

  test("needs an action that the rule allowed, and a key that may vote", async () => {
    const { agent, policy } = await enforced();
    const [use, other] = [(await submit(agent)).body.id, (await submit("stranger")).body.id];
    assert.equal((await flag(policy, other)).body.code, "VALIDATION_FAILED");
    assert.equal((await flag(policy, use, service.agent)).status, 403);
    assert.equal((await flag("payments", use)).body.code, "SUGGESTED_RULE_NOT_FOUND");
    assert.equal(await effectOf(agent), "allow");
  });

  test("by a stop that covers the rule stays in effect when the stop is lifted", needs("stop"), async () => {
    const [hit, missed] = [await enforced(), await enforced()];
    const { body: stop } = await admin("POST", "/v1/stop", { agent: hit.agent, reason: "it runs wild" });
    await admin("POST", `/v1/stop/${stop.id}/lift`, {});
    assert.equal(await effectOf(hit.agent), "require_approval");
    assert.equal(await effectOf(missed.agent), "allow");
    assert.deepEqual(
      [(await readRule(hit.policy)).reverted.cause, (await readRule(hit.policy)).reverted.stop_id],
      ["stop", stop.id],
    );
  });

  test("by failed results needs three of them, and a larger share than the policy names", async () => {
    const { agent, policy } = await enforced();
    for (let i = 0; i < 11; i++) await run(agent, true);
    for (let i = 0; i < 2; i++) await run(agent, false);
    assert.equal((await readRule(policy)).results, "sssssssssssff");
    await run(agent, false);
    // 3 of 14 are more than a fifth.
    assert.deepEqual([(await readRule(policy)).reverted.cause, await effectOf(agent)], ["failure", "require_approval"]);
    const quick = await enforced();
    for (let i = 0; i < 2; i++) await run(quick.agent, false);
    assert.equal(await effectOf(quick.agent), "allow");
  });

  test("stays in effect over a new version, a deactivation, a new activation and a restart, until a person restores it", async () => {
    const { agent, policy } = await enforced();
    const use = await run(agent, true);
    await flag(policy, use);
    const narrower = suggestion(policy, agent, { mode: "enforce", description: "narrower" });
    assert.equal((await admin("PUT", `/v1/policies/${policy}?activate=true`, narrower)).status, 200);
    assert.equal(await effectOf(agent), "require_approval");
    await admin("POST", `/v1/policies/${policy}/deactivate`);
    await admin("POST", `/v1/policies/${policy}/activate`, { version: 1 });
    await admin("POST", `/v1/policies/${policy}/activate`, {});
    assert.equal(await effectOf(agent), "require_approval");
    await service.restart();
    assert.equal(await effectOf(agent), "require_approval");

    assert.equal((await restore(policy, alice)).status, 403);
    const restored = await restore(policy);
    assert.deepEqual([restored.status, restored.body.status, restored.body.results], [200, "active", ""]);
    assert.equal(await effectOf(agent), "allow");
    assert.equal((await restore(policy)).body.code, "SUGGESTED_RULE_NOT_REVERTED");
  });

  test("stays in effect when the policy comes from a source that is read again", async () => {
    const file = join(service.folder, "policies", "suggested.yaml");
    const agent = `bot-${++n}`;
    const text = (description: string): string =>
      JSON.stringify(suggestion("suggested-from-source", agent, { mode: "enforce", description }));
    writeFileSync(file, text("first"));
    await until("the source was read", async () => (await readRule("suggested-from-source"))?.status === "active");
    await flag("suggested-from-source", (await submit(agent)).body.id);
    writeFileSync(file, text("second"));
    await until(
      "the source was read again",
      async () => (await admin("GET", "/v1/policies/suggested-from-source")).body.latest_version === 2,
    );
    assert.equal(await effectOf(agent), "require_approval");
    assert.ok(readFileSync(file, "utf8").includes("second"));
  });
});
