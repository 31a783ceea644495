/**
 * A submission with `join=open` returns the open action with the same key and request, instead of creating a second
 * one.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs, hasFeature } from "../../support/features.ts";
import { rawSqlite, type RawStore } from "../../support/raw-store.ts";
import { plainVotes, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules:
  - { name: pay, tool: pay, effect: allow }
  - { name: ask, tool: ask, effect: require_approval, approval: { expires_in: 1h } }
limits: [{ name: few, tool: pay, operation: counted, per: agent, count: 2, window: 1h }]
`;
let service: Service;
let raw: RawStore;
let approver: string;
let n = 0;

before(async () => {
  let path = "";
  service = await startService({
    policy: POLICY,
    broken: true,
    change(config) {
      plainVotes(config);
      config.approvals.max_pending_per_key = 40;
    },
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path });
    },
  });
  raw = await rawSqlite(path);
  const body = { name: "Anna", preset: "approver" };
  approver = (await call("POST", "/v1/api-keys", body, service.admin)).body.key as string;
});
after(async () => {
  const { faults } = await auditStore(service.storage);
  await raw.close();
  await service.close();
  assert.deepEqual(faults, []);
});

const call = (method: string, path: string, body?: unknown, key = service.agent): Promise<Answer> =>
  service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
/** Returns a request that no other test uses. */
const wish = (tool: string, more: object = {}): object => ({
  agent_id: "bot",
  tool,
  operation: "do",
  params: { n: ++n },
  ...more,
});
const submit = (body: object, headers: Record<string, string> = {}, key = service.agent): Promise<Answer> =>
  service.call("POST", "/v1/actions?join=open", { key, body, headers });
const joined = ({ headers }: Answer): boolean => headers.get("action-joined") === "true";
const size = async (): Promise<number> => (await service.storage.head()).size;
async function vote(id: string, approve = true): Promise<void> {
  const token = (await call("GET", `/v1/actions/${id}`, undefined, approver)).body.approval_token;
  assert.equal((await call("POST", `/v1/actions/${id}/approval`, { token, approve }, approver)).status, 200);
}

test("a duplicate request returns the pending action, and nothing is recorded", async () => {
  const body = wish("ask", { context: { ticket: "T-1" }, meta: { session: 1 } });
  const first = await submit(body);
  assert.deepEqual([first.status, joined(first)], [202, false]);
  const before = await size();
  const again = await submit({ ...body, meta: { session: 2 } });
  assert.deepEqual(
    [again.status, joined(again), again.body.id, again.headers.get("location"), again.body.meta],
    [202, true, first.body.id, first.headers.get("location"), { session: 1 }],
  );
  assert.equal(await size(), before);
  const reordered = JSON.parse(JSON.stringify(body)) as { context: object };
  const other = `{"context":${JSON.stringify(reordered.context)},"params":{"n":${n}},"operation":"do","tool":"ask","agent_id":"bot"}`;
  const { body: same } = await service.call("POST", "/v1/actions?join=open", { raw: other });
  assert.equal(same.id, first.body.id, "the order of members is no difference");
});

test("without join, or with other parameters or context, another agent or another key, a new action is created", async () => {
  const body = wish("ask", { context: { a: 1 } });
  const { id } = (await submit(body)).body;
  const made = await call("POST", "/v1/api-keys", { name: "other", preset: "agent" }, service.admin);
  const others = [
    await call("POST", "/v1/actions", body),
    await submit({ ...body, params: { n, x: null } }),
    await submit({ ...body, context: { a: 1, b: 1 } }),
    await submit({ ...body, operation: "Do" }),
    await submit({ ...body, agent_id: "bot2" }),
    await submit(body, {}, made.body.key as string),
  ];
  for (const each of others) assert.deepEqual([each.status, joined(each), each.body.id === id], [202, false, false]);
  // Two actions are open now. The one that expires last is always joined.
  const [one, two] = [await submit(body), await submit(body)];
  assert.ok(joined(one) && one.body.id === two.body.id);
});

test("an allowed or approved action is joined until it is started", async () => {
  const allowed = wish("pay");
  const first = (await submit(allowed)).body;
  const again = await submit(allowed);
  assert.deepEqual([again.status, joined(again), again.body.id], [200, true, first.id]);
  const asked = wish("ask");
  const { id } = (await submit(asked)).body;
  await vote(id);
  const approved = await submit(asked);
  assert.deepEqual(
    [approved.status, joined(approved), approved.body.id, approved.body.status],
    [200, true, id, "approved"],
  );
  for (const [body, own] of [
    [allowed, first.id],
    [asked, id],
  ] as const) {
    assert.equal((await call("POST", `/v1/actions/${own}/start`, {})).status, 200);
    const next = await submit(body);
    assert.deepEqual([joined(next), next.body.id === own], [false, false]);
  }
});

test("an action that is denied, cancelled, erased or expired is not joined", async () => {
  const ends: ((id: string) => Promise<unknown>)[] = [
    (id) => vote(id, false),
    (id) => call("POST", `/v1/actions/${id}/cancel`, {}),
  ];
  if (hasFeature("retention"))
    ends.push(async (id) => {
      await call("POST", `/v1/actions/${id}/cancel`, {});
      await call("POST", `/v1/actions/${id}/erase`, { reason: "r" }, service.admin);
    });
  for (const end of ends) {
    const body = wish("ask");
    const { id } = (await submit(body)).body;
    await end(id);
    const next = await submit(body);
    assert.deepEqual([next.status, joined(next), next.body.id === id], [202, false, false]);
  }
  const denied = wish("nothing");
  const first = await submit(denied);
  const second = await submit(denied);
  assert.deepEqual([first.body.status, joined(second), first.body.id === second.body.id], ["denied", false, false]);
});

test("twenty concurrent duplicate requests are one action", async () => {
  const body = wish("ask");
  const answers = await Promise.all(Array.from({ length: 20 }, () => submit(body)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202]));
  assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1);
  assert.equal(answers.filter((answer) => !joined(answer)).length, 1);
});

test("a joined action counts neither as another pending action nor against a limit", async () => {
  const made = await call("POST", "/v1/api-keys", { name: "many", preset: "agent", agent_id: "many" }, service.admin);
  const key = made.body.key as string;
  const bodies = Array.from({ length: 40 }, () => wish("ask", { agent_id: "many" }));
  for (const body of bodies) assert.equal((await submit(body, {}, key)).status, 202);
  assert.equal((await submit(wish("ask", { agent_id: "many" }), {}, key)).body.code, "TOO_MANY_PENDING");
  const again = await submit(bodies[3] as object, {}, key);
  assert.deepEqual([again.status, joined(again)], [202, true]);

  const counted = wish("pay", { operation: "counted" });
  for (let i = 0; i < 5; i++) assert.equal((await submit(counted)).body.status, "allowed");
  const another = wish("pay", { operation: "counted" });
  assert.equal((await submit(another)).body.status, "allowed");
  assert.equal((await submit(wish("pay", { operation: "counted" }))).body.reason_code, "LIMIT_EXCEEDED");
});

test("an idempotency key stores the action that its call joined, and returns it when the key is used again", async () => {
  const body = wish("ask");
  const { id } = (await submit(body, { "Idempotency-Key": "join-1" })).body;
  const second = await submit(body, { "Idempotency-Key": "join-2" });
  assert.deepEqual([second.body.id, joined(second), second.headers.get("idempotency-replayed")], [id, true, null]);
  await call("POST", `/v1/actions/${id}/cancel`, {});
  for (const key of ["join-1", "join-2"]) {
    const replayed = await submit(body, { "Idempotency-Key": key });
    assert.deepEqual(
      [replayed.body.id, replayed.body.status, joined(replayed), replayed.headers.get("idempotency-replayed")],
      [id, "cancelled", false, "true"],
    );
    assert.equal((await submit(wish("ask"), { "Idempotency-Key": key })).body.code, "IDEMPOTENCY_CONFLICT");
  }
  const next = await submit(body, { "Idempotency-Key": "join-3" });
  assert.deepEqual([next.body.id === id, joined(next)], [false, false]);
});

test("a joined submission waits until its action is decided", async () => {
  const body = wish("ask");
  const { id } = (await submit(body)).body;
  const waiting = submit(body, { prefer: "wait=30" });
  await vote(id);
  const answer = await waiting;
  assert.deepEqual([answer.status, answer.body.id, answer.body.status, joined(answer)], [200, id, "approved", true]);
});

test("a joined action gets a permit if the call prefers one, after a new recorded decision; otherwise it gets none", async () => {
  const body = wish("ask");
  const { id } = (await submit(body)).body;
  await vote(id);
  const plain = await submit(body);
  assert.deepEqual([plain.body.status, plain.body.permit, joined(plain)], ["approved", null, true]);
  const before = await size();
  const permitted = await submit(body, { prefer: "wait=30, permit" });
  assert.deepEqual(
    [permitted.body.id, joined(permitted), permitted.headers.get("preference-applied")],
    [id, true, "permit"],
  );
  assert.equal(await size(), before + 1, "the redecision, and nothing for the join");
  const started = await call("POST", `/v1/actions/${id}/start`, { permit: permitted.body.permit });
  assert.deepEqual([started.status, started.body.status], [200, "executing"]);
});

test("an action for which the policies now require more people gets no permit", async () => {
  const body = wish("ask");
  const { id } = (await submit(body)).body;
  await vote(id);
  const two = {
    policy: "two",
    rules: [{ name: "two", tool: "ask", effect: "require_approval", approval: { quorum: 2 } }],
  };
  assert.equal((await call("POST", "/v1/policies?activate=true", two, service.admin)).status, 201);
  const answer = await submit(body, { prefer: "permit" });
  assert.deepEqual(
    [
      answer.status,
      answer.body.id,
      answer.body.status,
      answer.body.permit,
      answer.body.approvals_needed,
      joined(answer),
    ],
    [202, id, "pending_approval", null, 2, true],
  );
  await call("POST", "/v1/policies/two/deactivate", undefined, service.admin);
});

test("an action that the policies now deny is not joined: the submission is decided and denied", async () => {
  const bodies = [wish("ask"), wish("ask"), wish("pay")];
  const ids: string[] = [];
  for (const body of bodies) ids.push((await submit(body)).body.id as string);
  await vote(ids[0] as string);
  const stop = { policy: "stop", rules: [{ name: "none", tool: "*", effect: "deny", reason: "no more" }] };
  assert.equal((await call("POST", "/v1/policies?activate=true", stop, service.admin)).status, 201);
  for (const [i, body] of bodies.entries()) {
    const { status, body: record, headers } = await submit(body);
    assert.deepEqual(
      [status, record.status, record.reason, record.permit, headers.get("action-joined"), record.id === ids[i]],
      [200, "denied", "no more", null, null, false],
    );
  }
  await call("POST", "/v1/policies/stop/deactivate", undefined, service.admin);
  for (const [i, body] of bodies.entries()) assert.equal((await submit(body)).body.id, ids[i]);
});

test(
  "nothing is joined while a stop is active; after it is lifted, pending and startable actions are joined again",
  needs("stop"),
  async () => {
    const bodies = [wish("ask"), wish("pay")];
    const ids: string[] = [];
    for (const body of bodies) ids.push((await submit(body)).body.id as string);
    const stop = await call("POST", "/v1/stop", { reason: "drill" }, service.admin);
    assert.equal(stop.status, 201);
    for (const body of bodies) {
      const answer = await submit(body);
      assert.deepEqual([answer.body.status, answer.body.reason_code, joined(answer)], ["denied", "STOPPED", false]);
    }
    await call("POST", `/v1/stop/${stop.body.id as string}/lift`, { reason: "over" }, service.admin);
    for (const [i, body] of bodies.entries()) assert.equal((await submit(body)).body.id, ids[i]);
  },
);

test("an action that was altered in the store is not joined", async () => {
  const body = wish("ask");
  const { id } = (await submit(body)).body;
  const table = raw.tables.find(({ name }) => name === "actions");
  assert.ok(table !== undefined);
  const row = (await raw.rows(table)).find((each) => each["id"] === id);
  assert.ok(row !== undefined);
  for (const [column, value] of [
    ["status", "approved"],
    ["expires_at", Number(row["expires_at"]) + 1],
    ["request", String(row["request"]).replace('"do"', '"to"')],
  ] as const) {
    if (column === "status") await raw.set(table, row, "approved_until", Number(row["expires_at"]));
    await raw.set(table, row, column, value);
    const answer = await submit(body);
    assert.deepEqual([answer.status, answer.body.code, column], [409, "RECORD_ALTERED", column]);
    await raw.set(table, row, column, row[column] ?? null);
    await raw.set(table, row, "approved_until", null);
  }
  // The action of another request, under this request's hash.
  const theirs = (await submit(wish("ask", { agent_id: "else" }))).body.id as string;
  const other = (await raw.rows(table)).find((each) => each["id"] === theirs);
  assert.ok(other !== undefined);
  const mine = wish("ask");
  const { request_hash } = (await call("POST", "/v1/gate/decide", mine)).body;
  await raw.set(table, other, "request_hash", request_hash as string);
  assert.equal((await submit(mine)).body.code, "RECORD_ALTERED");
  await raw.set(table, other, "request_hash", other["request_hash"] ?? null);
});

test("an invalid or repeated join parameter is rejected and creates no approval request", async () => {
  const before = await size();
  for (const query of ["join=", "join=any", "join=Open", "join=open&join=open", "joined=open"]) {
    const { status, body } = await call("POST", `/v1/actions?${query}`, wish("ask"));
    assert.deepEqual([status, body.code, query], [422, "VALIDATION_FAILED", query]);
  }
  assert.equal(await size(), before);
});

test("a revoked key, and a key bound to another agent, cannot join", async () => {
  const made = await call("POST", "/v1/api-keys", { name: "gone", preset: "agent", agent_id: "gone" }, service.admin);
  const key = made.body.key as string;
  const body = wish("ask", { agent_id: "gone" });
  assert.equal((await submit(body, {}, key)).status, 202);
  assert.equal((await submit({ ...body, agent_id: "bot" }, {}, key)).body.code, "AGENT_MISMATCH");
  await call("DELETE", `/v1/api-keys/${made.body.id as string}`, undefined, service.admin);
  assert.equal((await submit(body, {}, key)).status, 401);
});

test("the actions of one request are listed by its hash, if the caller can see them", async () => {
  const body = wish("ask", { agent_id: "bound" });
  const made = await call("POST", "/v1/api-keys", { name: "bound", preset: "agent", agent_id: "bound" }, service.admin);
  const key = made.body.key as string;
  const [one, two] = [await call("POST", "/v1/actions", body), await call("POST", "/v1/actions", body, key)];
  const { request_hash } = one.body;
  const list = async (query: string, by: string): Promise<string[]> =>
    (await call("GET", `/v1/actions?request_hash=${query}`, undefined, by)).body.actions.map(
      ({ id }: { id: string }) => id,
    );
  assert.deepEqual(await list(request_hash, service.admin), [two.body.id, one.body.id]);
  assert.deepEqual(await list(`${request_hash}&status=approved`, service.admin), []);
  assert.deepEqual(await list(`${request_hash}&status=pending_approval&limit=1`, service.admin), [two.body.id]);
  assert.deepEqual(await list(request_hash, key), [two.body.id, one.body.id], "both are of its agent");
  assert.deepEqual(await list(request_hash, service.agent), [one.body.id], "this key sees what it submitted");
  for (const hash of ["", "x", request_hash.toUpperCase(), request_hash.slice(1), `${request_hash}0`]) {
    const { status, body: problem } = await call("GET", `/v1/actions?request_hash=${hash}`, undefined, service.admin);
    assert.deepEqual([status, problem.code, problem.errors[0].parameter], [422, "VALIDATION_FAILED", "request_hash"]);
  }
});

test("an action that is past its expiry is not joined, whether or not the expiry was recorded", async () => {
  const bodies = [wish("ask"), wish("pay"), wish("ask")];
  const ids: string[] = [];
  for (const body of bodies) ids.push((await submit(body)).body.id as string);
  await vote(ids[2] as string);
  service.clock.now += 8 * 86_400_000;
  for (const [i, body] of bodies.entries()) {
    const next = await submit(body);
    assert.deepEqual([joined(next), next.body.id === ids[i]], [false, false]);
  }
});
