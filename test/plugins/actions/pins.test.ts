/**
 * Pinned facts: what an approver saw is what runs. The values are read again at each vote, permit and start.
 * @needs replay
 */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { parsePolicies } from "../../../src/domain/policy/parse/parse.ts";
import { definePlugin, type FactSource } from "../../../src/plugin.ts";
import { testNotifier } from "../../support/notifier.ts";
import { makeKey, person, plainVotes, startService, type Service } from "../../support/service.ts";

const POLICY = `policy: invoices
facts:
  invoice:
    source: erp
    with: { id: params.invoice }
    schema: { type: object, properties: { total: { type: number }, status: { type: string }, note: { type: string } }, required: [total] }
rules:
  - { name: tiny, tool: pay, when: facts.invoice.total < 5, effect: allow }
  - name: pay
    tool: pay
    effect: require_approval
    approval: { quorum: 1, pins: [facts.invoice.total, facts.invoice.status] }
  - { name: small, tool: settle, when: facts.invoice.total <= 100, effect: allow }
  - name: large
    tool: settle
    effect: require_approval
    approval: { quorum: 1, valid_for: 10m, notify: [desk], pins: [facts.invoice.total] }
  - name: two people
    tool: wire
    effect: require_approval
    approval: { quorum: 2, pins: [facts.invoice.total] }
---
policy: reads
facts:
  invoice: { source: erp, with: { id: params.id }, schema: { type: object, properties: { total: { type: number } } } }
rules:
  - { name: read, tool: read, when: facts.invoice.total >= 0, effect: allow }
`;

let service: Service;
let bob: string;
let carol: string;
let invoice: unknown;
let reads: string[];
let failing: (() => Promise<never>) | null = null;

const erp: FactSource = {
  name: "erp",
  inputs: ["id"],
  timeoutMs: 300,
  read({ id }) {
    reads.push(String(id));
    return failing === null ? Promise.resolve(invoice as never) : failing();
  },
};

before(async () => {
  reads = [];
  invoice = { total: 100, status: "open" };
  service = await startService({
    policy: POLICY,
    plugins: [
      { plugin: definePlugin({ name: "erp", setup: () => ({ factSources: [erp] }) }), options: {}, origin: "erp" },
      testNotifier().plugin,
    ],
    change(config) {
      plainVotes(config);
      config.channels = { other: { notifier: "pigeon", people: [{ owner: person("ada"), to: "ada" }] } };
    },
  });
  ({ key: bob } = await makeKey(service, { name: "bob", owner: "bob", preset: "approver" }));
  ({ key: carol } = await makeKey(service, { name: "carol", owner: "carol", preset: "approver" }));
});
beforeEach(() => {
  invoice = { total: 100, status: "open" };
  failing = null;
});
// Audits the store, too: each commitment to pins, and that each vote and start is about them.
after(() => service.close());

let next = 0;
const submit = async (tool = "pay", params: object = { invoice: `i-${next++}` }) =>
  (await service.call("POST", "/v1/actions", { body: { agent_id: "a", tool, operation: "run", params } })).body;
const post = (id: string, path: string, body: object, key = service.agent) =>
  service.call("POST", `/v1/actions/${id}/${path}`, { key, body });
const read = async (id: string, key: string) => (await service.call("GET", `/v1/actions/${id}`, { key })).body;
const vote = async (id: string, key = bob, token?: string) =>
  post(id, "approval", { approve: true, token: token ?? (await read(id, key)).approval_token }, key);
const entries = async (id: string) =>
  (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events.map(
    ({ entry }: { entry: object }) => entry,
  );

test("an approver sees the values, the vote and the start commit to them, and neither the agent nor the log does", async () => {
  const { id } = await submit();
  assert.deepEqual((await read(id, bob)).pins, [
    { path: "facts.invoice.status", policy: "invoices", value: "open", current: "open", state: "same" },
    { path: "facts.invoice.total", policy: "invoices", value: 100, current: 100, state: "same" },
  ]);
  assert.equal((await read(id, service.agent)).pins, undefined);
  // So does the list of a group, whose requests people vote on together.
  const groups = (await service.call("GET", "/v1/approvals/groups?tool=pay", { key: bob })).body.groups;
  const list = async (key: string) =>
    (await service.call("GET", `/v1/approvals?group=${groups[0].id}`, { key })).body.actions[0].pins;
  assert.deepEqual(await list(bob), [
    { path: "facts.invoice.status", policy: "invoices", value: "open", state: "not_read" },
    { path: "facts.invoice.total", policy: "invoices", value: 100, state: "not_read" },
  ]);
  assert.equal(await list(service.agent), undefined);
  assert.equal((await vote(id)).status, 200);
  assert.equal((await post(id, "start", {})).status, 200);
  const recorded = await entries(id);
  const digests = recorded.map(({ pins }: { pins?: string }) => pins);
  assert.match(digests[0], /^[0-9a-f]{64}$/);
  assert.equal(new Set(digests).size, 1, "decision, vote and start name the same values");
  assert.doesNotMatch(JSON.stringify(recorded), /open|"value"/);
  const { body: replayed } = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } });
  assert.equal(replayed.equal, true);
});

test("a change after the approval returns the action to the approver with both values, once, and does not run it", async () => {
  const { id } = await submit();
  await vote(id);
  invoice = { total: 250, status: "open", note: "not pinned" };
  const starts = await Promise.all([post(id, "start", {}), post(id, "start", {})]);
  assert.deepEqual(starts.map(({ status }) => status).sort(), [409, 409]);
  const first = starts.find(({ body }) => body.code === "MORE_APPROVALS_NEEDED");
  assert.match(first?.body.detail, /facts\.invoice\.total/);
  assert.doesNotMatch(JSON.stringify(starts.map(({ body }) => body)), /100|250/, "the values are for approvers");
  const seen = await read(id, bob);
  assert.deepEqual([seen.status, seen.approvals], ["pending_approval", []]);
  assert.deepEqual(seen.pins[1], {
    path: "facts.invoice.total",
    policy: "invoices",
    value: 250,
    previous: 100,
    current: 250,
    state: "same",
  });
  assert.equal((await entries(id)).filter(({ type }: { type: string }) => type === "redecision").length, 1);
  await vote(id);
  assert.equal((await post(id, "start", {})).status, 200);
});

test("a permit is refused in the same way, and an earlier permit does not start the action", async () => {
  const { id } = await submit();
  await vote(id);
  const { body: permitted } = await post(id, "permit", {});
  invoice = { total: 100, status: "closed" };
  const refused = await post(id, "permit", {});
  assert.deepEqual([refused.status, refused.body.permit], [202, null]);
  assert.ok(refused.body.redecision.changed.includes("facts.invoice.status"));
  await vote(id);
  assert.equal((await post(id, "start", { permit: permitted.permit })).body.code, "PERMIT_INVALID");
});

test("a change while the approver looks is shown, and the vote is refused with the difference and voids earlier votes", async () => {
  const { id } = await submit("wire");
  await vote(id, carol);
  const seen = await read(id, bob);
  invoice = { total: 101, status: "open" };
  const looked = await read(id, bob);
  assert.deepEqual([looked.pins[0].value, looked.pins[0].current, looked.pins[0].state], [100, 101, "changed"]);
  const refused = await vote(id, bob, seen.approval_token);
  assert.deepEqual([refused.status, refused.body.code], [409, "FACTS_CHANGED"]);
  assert.match(refused.body.detail, /facts\.invoice\.total was 100 and is 101/);
  const again = await vote(id, bob, seen.approval_token);
  assert.deepEqual([again.status, again.body.code], [409, "FACTS_CHANGED"]);
  assert.match(again.body.detail, /was 100 and is 101/);
  assert.deepEqual((await read(id, bob)).approvals, [], "carol approved another amount");
  await vote(id, bob);
  assert.equal((await post(id, "start", {})).status, 409);
  assert.equal((await vote(id, carol)).body.status, "approved");
  assert.equal((await post(id, "start", {})).status, 200);
});

test("a value that changed to one that needs no approval returns to the approver, too", async () => {
  const { id } = await submit();
  await vote(id);
  invoice = { total: 1, status: "open" };
  assert.equal((await post(id, "start", {})).body.code, "MORE_APPROVALS_NEEDED");
  invoice = { total: 30, status: "open" };
  assert.match((await vote(id)).body.detail, /facts\.invoice\.total was not pinned and is 30/);
  assert.equal((await read(id, bob)).pins[1].previous, undefined);
  invoice = { total: 1, status: "open" };
  assert.match((await vote(id)).body.detail, /facts\.invoice\.total was 30 and is 1\./);
  const pin = { path: "facts.invoice.total", policy: "invoices", value: 1, previous: 30, current: 1, state: "same" };
  assert.deepEqual((await read(id, bob)).pins[1], pin);
  await vote(id);
  assert.equal((await post(id, "start", {})).status, 200);
});

test("an action that needs no approval any more is approved again with the earlier terms, and its channels are notified", async () => {
  const notices = async (id: string) =>
    (await service.storage.deliveriesOfAction(id)).filter(({ destination }) => destination === "channel desk").length;
  for (const isApproved of [false, true]) {
    invoice = { total: 50, status: "open" };
    const { id, decision } = await submit("settle");
    assert.equal(decision, "allow");
    invoice = { total: 500, status: "open" };
    assert.equal((await post(id, "permit", {})).status, 202);
    if (isApproved) await vote(id);
    const before = await notices(id);
    invoice = { total: 50, status: "open" };
    const returned = isApproved ? await post(id, "start", {}) : await vote(id);
    assert.equal(returned.body.code, isApproved ? "MORE_APPROVALS_NEEDED" : "FACTS_CHANGED");
    assert.equal(await notices(id), before + 1);
    const approved = await vote(id);
    assert.deepEqual([approved.status, approved.body.status], [200, "approved"]);
    const periodMs = Date.parse(approved.body.approved_until) - Date.parse(approved.body.updated_at);
    assert.equal(periodMs, 600_000);
    assert.equal((await post(id, "start", {})).status, 200);
  }
});

test("a pinned member without a value denies the action, because no one could see it", async () => {
  const { id } = await submit();
  await vote(id);
  invoice = { total: 100 };
  const denied = await submit();
  assert.deepEqual([denied.decision, denied.reason_code], ["deny", "CONDITION_ERROR"]);
  assert.match(denied.reason, /facts\.invoice\.status has no value/);
  assert.equal((await post(id, "start", {})).body.code, "NO_LONGER_ALLOWED");
});

test("facts that cannot be read do not run the action: slow, down, of another shape, missing", async () => {
  const { id } = await submit();
  await vote(id);
  failing = () => new Promise((_, reject) => setTimeout(() => reject(new Error("late")), 2_000));
  const slow = await post(id, "start", {});
  assert.deepEqual([slow.status, slow.body.code], [503, "FACTS_UNAVAILABLE"]);
  assert.equal((await read(id, bob)).status, "approved");
  service.clock.now += 3_000;
  failing = null;
  assert.equal((await post(id, "start", {})).status, 200, "after the source is back");
  for (const [answer, code] of [
    [{ total: "100", status: "open" }, "NO_LONGER_ALLOWED"],
    [null, "NO_LONGER_ALLOWED"],
  ] as const) {
    invoice = { total: 100, status: "open" };
    const action = await submit();
    await vote(action.id);
    invoice = answer;
    assert.equal((await post(action.id, "start", {})).body.code, code);
  }
  failing = () => Promise.reject(new Error("down"));
  const unread = await submit();
  assert.deepEqual([unread.decision, unread.reason_code], ["deny", "CONDITION_ERROR"]);
});

test("a repeated start after a lost response reads the facts again, and must not run if they changed", async () => {
  const { id } = await submit();
  await vote(id);
  assert.equal((await post(id, "start", { attempt: "first-attempt-of-this-run" })).status, 200);
  assert.equal((await post(id, "start", { attempt: "first-attempt-of-this-run" })).status, 200);
  invoice = { total: 7, status: "open" };
  const again = await post(id, "start", { attempt: "first-attempt-of-this-run" });
  assert.equal(again.body.code, "MORE_APPROVALS_NEEDED");
});

test("a restart between the approval and the start keeps the values", async () => {
  const { id } = await submit();
  await vote(id);
  await service.restart();
  invoice = { total: 99, status: "open" };
  assert.equal((await post(id, "start", {})).body.code, "MORE_APPROVALS_NEEDED");
  await service.restart();
  const seen = await read(id, bob);
  assert.deepEqual([seen.pins[1].value, seen.pins[1].previous], [99, 100]);
});

test("altered values in the store are not shown and cannot be voted on", async () => {
  const { id } = await submit();
  const { approval_token } = await read(id, bob);
  const row = await service.storage.action(id);
  const writePast = (past: string | null) =>
    service.storage.write(async (tx) => {
      const guard = { status: "pending_approval", expires_after: 0 } as const;
      await tx.updateAction(id, guard, { status: guard.status, past, updated_at: row?.updated_at ?? 0 });
    });
  await writePast((row?.past ?? "").replace('"total":100', '"total":5'));
  assert.equal((await service.call("GET", `/v1/actions/${id}`, { key: bob })).body.code, "RECORD_ALTERED");
  assert.equal((await vote(id, bob, approval_token)).body.code, "RECORD_ALTERED");
  // The list of its group shows the other actions, and this one without its facts.
  const { groups } = (await service.call("GET", "/v1/approvals/groups?tool=pay", { key: bob })).body;
  const path = `/v1/approvals?group=${groups[0].id}&sort=newest`;
  const list = (await service.call("GET", path, { key: bob })).body;
  assert.deepEqual([list.actions[0].id, list.actions[0].pins], [id, undefined]);
  await writePast(row?.past ?? null);
});

test("a result expires the cached facts that name a value of its request", async () => {
  const fetched = async (work: () => Promise<unknown>): Promise<number> => {
    const count = reads.length;
    await work();
    return reads.length - count;
  };
  const action = await submit("read", { id: "i-w" });
  assert.equal(await fetched(() => submit("read", { id: "i-w", more: 1 })), 0);
  const attempt = "the-attempt-of-this-write";
  await post(action.id, "start", { attempt });
  assert.equal(await fetched(() => submit("read", { id: "i-w", more: 2 })), 0);
  const other = await submit("read", { id: "i-other" });
  await post(action.id, "result", { success: true, attempt });
  assert.equal(await fetched(() => submit("read", { id: "i-w", more: 3 })), 1);
  assert.equal(await fetched(() => submit("read", { id: "i-other", more: other.id })), 0);
  await post(action.id, "result", { success: true, attempt });
  assert.equal(await fetched(() => submit("read", { id: "i-w", more: 4 })), 0, "the result was repeated");
  const large = await submit("read", { id: "i-large", more: Array.from({ length: 10_001 }, (_, i) => i) });
  await post(large.id, "start", {});
  await post(large.id, "result", { success: true });
  assert.equal(await fetched(() => submit("read", { id: "i-large", more: 5 })), 1);
  assert.equal(await fetched(() => submit("read", { id: "i-other", more: 6 })), 0, "one action does not expire all");
});

test("pins that cannot work are refused when the policy is read", () => {
  const faults = (change: (text: string) => string): string =>
    parsePolicies(change(POLICY), "p.yaml")
      .faults.map(({ message }) => message)
      .join("\n");
  assert.equal(
    faults((text) => text),
    "",
  );
  const pin = "facts.invoice.status]";
  assert.match(
    faults((text) => text.replace(pin, "facts.order.id]")),
    /facts\.order/,
  );
  assert.match(
    faults((text) => text.replace(pin, "facts.invoice.totl]")),
    /totl/,
  );
  assert.match(
    faults((text) => text.replace(pin, "params.amount]")),
    /pins/,
  );
  assert.match(
    faults((text) => text.replace("quorum: 1, pins", "grants: { for: 1h, count: 2 }, pins")),
    /remove pins or grants/,
  );
});
