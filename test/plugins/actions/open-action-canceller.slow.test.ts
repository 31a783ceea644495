/**
 * Suspending an agent, revoking a key, and a policy that now denies: each ends open actions.
 * @needs agents
 */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { AgentRow } from "../../../src/contract/storage.ts";
import { needs } from "../../support/features.ts";
import { startService, type Answer, type Service, makeKey as makeKeyOn } from "../../support/service.ts";

const OPEN = `policy: open
rules:
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2, expires_in: 2h } }
  - { name: ask, operation: ask, effect: require_approval, approval: { expires_in: 2h } }
  - { name: go, operation: go, effect: allow }
`;

let service: Service;
let agent: { id: string; key: string };
let n = 0;
before(async () => {
  service = await startService({ policy: OPEN, change: (config) => (config.permits.valid_seconds = 3600) });
});
after(() => service.close());

const makeKey = (body: object): ReturnType<typeof makeKeyOn> => makeKeyOn(service, body);

/** Creates a separate key and agent for each test. */
let bot = "";
beforeEach(async () => {
  bot = `bot-${++n}`;
  agent = await makeKey({ name: bot, preset: "agent" });
  await service.call("POST", "/v1/agents", { key: service.admin, body: { id: bot } });
});

async function submit(operation: string, more: object = {}, key = agent.key): Promise<Answer["body"]> {
  const body = { agent_id: bot, tool: "t", operation, ...more };
  return (await service.call("POST", "/v1/actions", { key, body })).body;
}

async function vote(id: string, approve = true): Promise<Answer> {
  const { approval_token: token } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
  return service.call("POST", `/v1/actions/${id}/approval`, { key: service.admin, body: { token, approve } });
}

async function approved(): Promise<Answer["body"]> {
  const { id } = await submit("ask");
  assert.equal((await vote(id)).body.status, "approved");
  return look(id);
}

const start = ({ id }: { id: string }, key = agent.key): Promise<Answer> =>
  service.call("POST", `/v1/actions/${id}/start`, { key, body: {} });
const look = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
const lastEntry = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events.at(-1).entry;
const setAgent = (verb: string, body?: object): Promise<Answer> =>
  service.call("POST", `/v1/agents/${bot}/${verb}`, { key: service.admin, ...(body === undefined ? {} : { body }) });
const said = ({ status, body }: Answer): unknown[] => [status, body.code];

async function withPolicy(text: string, work: () => Promise<void>): Promise<void> {
  const path = "/v1/policies/import-yaml?activate=true";
  const made = await service.call("POST", path, { key: service.admin, body: { yaml: text } });
  assert.ok(made.status < 300, JSON.stringify(made.body));
  try {
    await work();
  } finally {
    const gone = await service.call("DELETE", `/v1/policies/${made.body.policies[0].id}`, { key: service.admin });
    assert.ok(gone.status < 300, JSON.stringify(gone.body));
  }
}

test("a suspension cancels the agent's pending and startable actions, under every spelling of its name, and nothing else", async () => {
  const open = [
    await submit("ask"),
    await submit("go"),
    await approved(),
    await submit("ask", { agent_id: bot.toUpperCase() }),
  ];
  const running = await submit("go");
  assert.equal((await start(running)).status, 200);
  const other = await submit("go", { agent_id: "another" });
  assert.equal((await setAgent("suspend", { reason: "runs wild" })).status, 200);
  for (const { id } of open) {
    assert.equal((await look(id)).status, "cancelled");
    const { type, verdict, status, comment, by } = await lastEntry(id);
    assert.deepEqual([type, verdict, status], ["approval", "cancelled", "cancelled"]);
    assert.equal(comment, `the agent "${bot}" was suspended: runs wild`);
    assert.equal(by.principal, "key:" + (await service.call("GET", "/v1/me", { key: service.admin })).body.key.id);
  }
  assert.equal((await look(running.id)).status, "executing", "what runs, runs");
  assert.equal((await look(other.id)).status, "allowed");
  assert.deepEqual(said(await start(open[1])), [409, "ACTION_NOT_STARTABLE"]);
  assert.equal((await setAgent("resume")).body.status, "active");
  for (const action of [open[1], open[2]]) assert.deepEqual(said(await start(action)), [409, "ACTION_NOT_STARTABLE"]);
});

test("a suspension cancels more actions than fit into one job", async () => {
  await Promise.all(Array.from({ length: 450 }, (_, i) => submit(i % 3 === 0 ? "go" : "ask", { params: { i } })));
  assert.equal((await setAgent("suspend")).status, 200);
  const left = await service.call("GET", `/v1/actions?agent_id=${bot}&limit=1000`, { key: service.admin });
  const statuses = left.body.actions.map(({ status }: { status: string }) => status);
  assert.deepEqual([statuses.length, new Set(statuses)], [450, new Set(["cancelled"])]);
});

test("actions that a crashed service left open at a suspension do not reopen with the agent", async () => {
  const [asked, allowed] = [await submit("ask"), await submit("go")];
  // The state after a crash between two jobs.
  await service.runtime.host.ledger.transact(async (tx) => {
    const row = (await tx.agent(bot)) as AgentRow;
    tx.recordAgent("suspended", { ...row, version: row.version + 1, suspended_at: tx.now }, null);
  });
  assert.equal((await look(asked.id)).status, "pending_approval");
  assert.deepEqual(said(await vote(asked.id)), [409, "NO_LONGER_ALLOWED"]);
  assert.deepEqual(said(await setAgent("resume")), [200, undefined]);
  assert.equal((await look(allowed.id)).status, "cancelled");
});

test("revoking a key cancels what it submitted, and no action of another key", async () => {
  const [asked, allowed, held] = [await submit("ask"), await submit("go"), await approved()];
  const { permit } = (await service.call("POST", `/v1/actions/${held.id}/permit`, { key: agent.key, body: {} })).body;
  const sister = await makeKey({ name: `${bot}-sister`, preset: "agent" });
  const other = await submit("ask", {}, sister.key);
  const tool = await makeKey({ name: `${bot}-tool`, scopes: ["actions:execute"] });
  assert.equal((await service.call("DELETE", `/v1/api-keys/${agent.id}`, { key: service.admin })).status, 200);
  for (const { id } of [asked, allowed, held]) {
    assert.equal((await look(id)).status, "cancelled");
    assert.equal((await lastEntry(id)).comment, `the key "${bot}", which submitted it, was revoked`);
  }
  const late = await service.call("POST", `/v1/actions/${held.id}/start`, { key: tool.key, body: { permit } });
  assert.deepEqual(said(late), [409, "ACTION_NOT_STARTABLE"]);
  assert.equal((await look(other.id)).status, "pending_approval");
});

test("an action that the policies now deny is neither approved nor started, and the record says why", async () => {
  const [asked, two, allowed, held] = [await submit("ask"), await submit("two"), await submit("go"), await approved()];
  const deny = "policy: closed\nrules:\n  - { name: shut, effect: deny, reason: the shop is closed }\n";
  await withPolicy(deny, async () => {
    const digest = (await service.runtime.host.policies.state()).digest;
    for (const [{ id }, answer] of [
      [asked, await vote(asked.id)],
      [two, await vote(two.id)],
      [allowed, await start(allowed)],
      [held, await start(held)],
    ] as const) {
      assert.deepEqual(said(answer), [409, "NO_LONGER_ALLOWED"]);
      assert.match(answer.body.detail, /the shop is closed/);
      const { status, reason, reason_code, permit, approvals } = await look(id);
      assert.deepEqual(
        [status, reason, reason_code, permit],
        ["denied", "the shop is closed", "NO_LONGER_ALLOWED", null],
      );
      assert.equal(approvals.length, id === held.id ? 1 : 0);
      const entry = await lastEntry(id);
      assert.deepEqual([entry.type, entry.policy_set, entry.status], ["redecision", digest, "denied"]);
      assert.deepEqual([entry.decision.rule, entry.decision.reason_code], ["shut", "POLICY_RULE"]);
    }
    assert.equal((await look(asked.id)).decision, "require_approval", "the first decision stays what it was");
  });
  assert.deepEqual(said(await start(allowed)), [409, "ACTION_NOT_STARTABLE"], "a deny is final");
});

test("a person can reject without a policy, and actions that the policies still allow continue", async () => {
  const [asked, allowed] = [await submit("ask"), await submit("go")];
  await withPolicy("policy: others\nrules:\n  - { name: shut, tool: another, effect: deny }\n", async () => {
    assert.equal((await start(allowed)).body.status, "executing");
  });
  await withPolicy("policy: closed\nrules:\n  - { name: shut, effect: deny }\n", async () => {
    const { body } = await vote(asked.id, false);
    assert.deepEqual([body.status, body.reason_code], ["denied", "POLICY_RULE"]);
  });
});

test(
  "an action also ends when its tool is withdrawn from the agent, and when its key expires",
  needs("agents"),
  async () => {
    const allowed = await submit("go");
    const change = { key: service.admin, body: { allowed_tools: ["another"] } };
    assert.equal((await service.call("PATCH", `/v1/agents/${bot}`, change)).status, 200);
    assert.deepEqual(said(await start(allowed)), [409, "NO_LONGER_ALLOWED"]);
    assert.equal((await lastEntry(allowed.id)).decision.reason_code, "TOOL_NOT_ALLOWED");

    bot = `${bot}-b`;
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const brief = await makeKey({ name: bot, preset: "agent", expires_at });
    const { id } = await submit("ask", {}, brief.key);
    service.clock.now += 61_000;
    try {
      assert.deepEqual(said(await vote(id)), [409, "NO_LONGER_ALLOWED"]);
      assert.equal((await lastEntry(id)).decision.reason_code, "KEY_ENDED");
    } finally {
      service.clock.now = 0;
    }
  },
);

test("an action keeps its place in a limit's count, and a lowered limit applies", async () => {
  const limit = (count: number): string =>
    `policy: counted\nlimits:\n  - { name: few, operation: go, count: ${count}, per: agent, window: 1h }\nrules:\n  - { name: none, operation: none, effect: allow }\n`;
  await withPolicy(limit(2), async () => {
    const [first, second] = [await submit("go"), await submit("go")];
    assert.equal((await submit("go")).reason_code, "LIMIT_EXCEEDED");
    assert.equal((await start(first)).body.status, "executing", "it is not counted twice");
    const yaml = { key: service.admin, body: { yaml: limit(1) } };
    assert.ok((await service.call("POST", "/v1/policies/import-yaml?activate=true", yaml)).status < 300);
    assert.deepEqual(said(await start(second)), [409, "NO_LONGER_ALLOWED"]);
    assert.equal((await lastEntry(second.id)).decision.reason_code, "LIMIT_EXCEEDED");
    assert.ok(
      !JSON.stringify(await lastEntry(second.id)).includes('"used"'),
      "the ledger tells nothing of what was used",
    );
  });
});
