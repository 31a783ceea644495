/** `meta` is displayed and committed to, but is no part of the decision. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { after, before, test } from "node:test";
import canonicalize from "canonicalize";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { auditStore } from "../../../src/testing/index.ts";
import { needs } from "../../support/features.ts";
import { rawSqlite, type RawStore } from "../../support/raw-store.ts";
import { ALLOWED, ASKED, startService, type Answer, type Service } from "../../support/service.ts";

let service: Service;
let raw: RawStore;

before(async () => {
  let path = "";
  service = await startService({
    broken: true,
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path });
    },
  });
  raw = await rawSqlite(path);
});
after(async () => {
  await raw.close();
  await service.close();
});

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const submit = (body: object, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call("POST", "/v1/actions", { body, headers });
const metaOf = async (headers: Record<string, string>, meta?: object): Promise<unknown> =>
  (await submit({ ...ALLOWED, ...(meta === undefined ? {} : { meta }) }, headers)).body.meta;
const entryOf = async (id: string): Promise<Answer["body"]> =>
  (await service.call("GET", `/v1/actions/${id}/events`)).body.events[0].entry;

test("meta is displayed and listed, and does not change the request hash or the decision", async () => {
  const meta = { session: "s-1", host: "build-7", nested: { z: [1, null], a: "ü" } };
  const [plain, traced] = [(await submit(ALLOWED)).body, (await submit({ ...ALLOWED, meta })).body];
  assert.deepEqual([plain.meta, traced.meta], [{}, meta]);
  assert.equal(traced.request_hash, plain.request_hash);
  assert.deepEqual((await service.call("GET", `/v1/actions/${traced.id}`)).body.meta, meta);
  const { actions } = (await service.call("GET", "/v1/actions?limit=2")).body;
  assert.deepEqual(
    actions.map((action: { meta: object }) => action.meta),
    [meta, {}],
  );
});

test(
  "the entry contains a salted commitment to meta, which another library's canonical JSON and SHA-256 reproduce",
  needs("replay"),
  async () => {
    const meta = { session: "s-2", 7: "x" };
    const { id } = (await submit({ ...ALLOWED, meta })).body;
    const entry = await entryOf(id);
    const { salt, ...kept } = JSON.parse((await service.storage.action(id))?.meta ?? "null");
    assert.deepEqual(kept, { meta });
    const serialize = canonicalize as unknown as (value: unknown) => string;
    const digest = createHash("sha256").update(serialize({ meta })).digest();
    assert.equal(entry.v, 1);
    assert.equal(entry.meta, createHash("sha256").update(Buffer.from(salt, "hex")).update(digest).digest("hex"));
    assert.equal(JSON.stringify(entry).includes("s-2"), false);
    const again = await entryOf((await submit({ ...ALLOWED, meta })).body.id);
    assert.notEqual(again.meta, entry.meta, "the same meta has another salt in every action");
    assert.equal((await entryOf((await submit(ALLOWED)).body.id)).meta, null);
    const replayed = await service.call("POST", "/v1/replay", { key: service.admin, body: { action_id: id } });
    assert.equal(replayed.body.equal, true);
  },
);

test("4,096 bytes of canonical JSON are accepted; one byte more is rejected with advice, and nothing is recorded", async () => {
  const sized = (bytes: number) => ({ t: "é".repeat((bytes - 8) / 2) });
  assert.equal((await submit({ ...ALLOWED, meta: sized(4096) }, { traceparent: TRACE })).status, 200);
  const { size } = await service.storage.head();
  for (const path of ["/v1/actions", "/v1/gate/decide"]) {
    const { status, body } = await service.call("POST", path, { body: { ...ALLOWED, meta: sized(4098) } });
    assert.deepEqual([status, body.code, body.errors[0].pointer], [422, "VALIDATION_FAILED", "/meta"]);
    assert.match(body.errors[0].detail, /at most 4096 bytes .* 4098/);
  }
  for (const meta of [[], "s", null, 1])
    assert.deepEqual([(await submit({ ...ALLOWED, meta })).status, meta], [422, meta]);
  assert.equal((await service.storage.head()).size, size);
});

test("a traceparent header is stored if the body has none, and a malformed one is ignored", async () => {
  assert.deepEqual(await metaOf({ traceparent: TRACE }), { traceparent: TRACE });
  assert.deepEqual(await metaOf({ traceparent: TRACE }, { session: "s" }), { session: "s", traceparent: TRACE });
  assert.deepEqual(await metaOf({ traceparent: TRACE }, { traceparent: "mine" }), { traceparent: "mine" });
  const others = [
    TRACE.toUpperCase(),
    `ff${TRACE.slice(2)}`,
    `00-${"0".repeat(32)}${TRACE.slice(35)}`,
    `${TRACE.slice(0, 36)}${"0".repeat(16)}-01`,
    `${TRACE}-x`,
    TRACE.slice(1),
    "",
  ];
  for (const traceparent of others) assert.deepEqual(await metaOf({ traceparent }), {}, traceparent);
});

test("policies cannot read meta: a condition that names it is invalid", async () => {
  const rule = { name: "r", tool: "x", when: "meta.session == 's'", effect: "allow" };
  const { status, body } = await service.call("POST", "/v1/policies", {
    key: service.admin,
    body: { policy: "peeks", rules: [rule] },
  });
  assert.deepEqual([status, body.code], [422, "POLICY_INVALID"]);
});

test("a repeated idempotency key returns the meta of its first call, and is not a conflict", async () => {
  const headers = { "Idempotency-Key": "meta-1" };
  const first = await submit({ ...ALLOWED, meta: { n: 1 } }, headers);
  const second = await submit({ ...ALLOWED, meta: { n: 2 } }, headers);
  assert.deepEqual([second.status, second.body.id, second.body.meta], [200, first.body.id, { n: 1 }]);
});

test("the audit reports meta that was altered in the store, and no one can vote on such an action", async () => {
  const { id } = (await submit({ ...ASKED, meta: { session: "mine" } })).body;
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
  const table = raw.tables.find(({ name }) => name === "actions");
  assert.ok(table !== undefined);
  const row = (await raw.rows(table)).find((each) => each["id"] === id);
  assert.ok(row !== undefined);
  const was = row["meta"] as string;
  for (const meta of [was.replace("mine", "hers"), was.replace('"salt":"', '"salt":"00'), null, "{"]) {
    await raw.set(table, row, "meta", meta);
    const vote = await service.call("POST", `/v1/actions/${id}/approval`, {
      key: service.admin,
      body: { token: body.approval_token, approve: true },
    });
    assert.deepEqual([vote.status, vote.body.code, meta], [409, "RECORD_ALTERED", meta]);
    assert.match(
      (await auditStore(service.storage)).faults.join("\n"),
      /its meta does not match the commitment in the ledger/,
    );
  }
  await raw.set(table, row, "meta", was);
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});

test("meta is erased with its action", needs("retention"), async () => {
  const { id } = (await submit({ ...ASKED, meta: { host: "annas-laptop" } })).body;
  await service.call("POST", `/v1/actions/${id}/cancel`, { body: {} });
  const erased = await service.call("POST", `/v1/actions/${id}/erase`, { key: service.admin, body: { reason: "r" } });
  assert.deepEqual([erased.status, erased.body.meta], [200, {}]);
  assert.equal(JSON.stringify(await service.storage.action(id)).includes("annas"), false);
  assert.deepEqual((await auditStore(service.storage)).faults, []);
});
