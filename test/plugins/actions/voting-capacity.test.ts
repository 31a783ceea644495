/** No one can meet a quorum, or approve their own submission, with keys that they created. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { rawSqlite, type RawStore } from "../../support/raw-store.ts";
import { createGroupService } from "../../../src/identity/groups.ts";
import { toCredential } from "../../../src/identity/keys.ts";
import { auditStore } from "../../../src/testing/ledger-audit.ts";
import {
  startService,
  type Answer,
  type Service,
  makeKey as makeKeyOn,
  addPerson,
  person,
} from "../../support/service.ts";

const ASKING = `policy: asking
rules:
  - { name: one, operation: one, effect: require_approval }
  - { name: two, operation: two, effect: require_approval, approval: { quorum: 2 } }
`;

let service: Service;
let raw: RawStore;
let n = 0;
/** Admins that the operator created on the machine. */
let ada: string;
let ben: string;
before(async () => {
  let path = "";
  service = await startService({
    policy: ASKING,
    change: (config) => (config.approvals.rejection_holds_seconds = 0),
    storage(folder) {
      path = join(folder, "assent.db");
      return sqliteStorage({ path });
    },
  });
  raw = await rawSqlite(path);
  ada = (await service.runtime.createAdminKey("ada")).key;
  ben = (await service.runtime.createAdminKey("ben")).key;
});
after(async () => {
  await raw.close();
  await service.close();
});

function makeKey(maker: string, more: object = {}): ReturnType<typeof makeKeyOn> {
  const name = `key ${++n}`;
  return makeKeyOn(service, { name, owner: name, preset: "approver", ...more }, maker);
}

async function submit(operation: string, key = service.agent): Promise<string> {
  const body = { agent_id: "bot", tool: "t", operation };
  return (await service.call("POST", "/v1/actions", { key, body })).body.id as string;
}

async function tokenOf(id: string, key: string): Promise<string | undefined> {
  return (await service.call("GET", `/v1/actions/${id}`, { key })).body.approval_token as string | undefined;
}

async function vote(id: string, key: string, approve = true): Promise<Answer> {
  return service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token: await tokenOf(id, key), approve } });
}

const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];

test("votes of keys with a common creator, at any depth, and of the creator count as one vote", async () => {
  const manager = await makeKey(ada, { scopes: ["keys:manage", "approvals:decide", "actions:read"] });
  const [first, second] = [await makeKey(ada), await makeKey(manager.key)];
  for (const [voter, others] of [
    [first.key, [second.key, manager.key, ada]],
    [ada, [first.key, second.key]],
    [second.key, [first.key]],
  ] as const) {
    const id = await submit("two");
    assert.deepEqual(said(await vote(id, voter)), [200, "pending_approval"]);
    for (const other of others) {
      const refused = await vote(id, other);
      assert.deepEqual(said(refused), [409, "ALREADY_VOTED"]);
      assert.match(refused.body.detail, /one person: one key created the other, or both have a common creator\./);
    }
    assert.deepEqual(said(await vote(id, (await makeKey(ben)).key)), [200, "approved"]);
  }
});

test("the creator of a key is its owner, whichever of the owner's keys created it", async () => {
  const managing = await makeKey(ada, { owner: "Eve", scopes: ["keys:manage", "approvals:decide", "actions:read"] });
  const puppet = await makeKey(managing.key);
  const eve = await makeKey(ben, { owner: "eve" });
  const id = await submit("two");
  assert.deepEqual(said(await vote(id, puppet.key)), [200, "pending_approval"]);
  const refused = await vote(id, eve.key);
  assert.deepEqual(said(refused), [409, "ALREADY_VOTED"]);
  assert.match(refused.body.detail, /count as one person: the same user signed in, owns the keys or created one/);
  assert.doesNotMatch(refused.body.detail, /common creator|trust_key_makers|no owner/);
});

test("a person who counts as the same as an earlier approver can still reject", async () => {
  const [first, second] = [await makeKey(ada), await makeKey(ada)];
  const id = await submit("two");
  assert.deepEqual(said(await vote(id, first.key)), [200, "pending_approval"]);
  assert.deepEqual(said(await vote(id, second.key, false)), [200, "denied"]);
});

test("no one approves their own submission with a key that they created", async () => {
  const scopes = ["actions:submit", "keys:manage", "approvals:decide", "actions:read"];
  const both = await makeKey(ada, { scopes });
  const child = await makeKey(both.key);
  const grandchild = await makeKey((await makeKey(both.key, { scopes })).key);
  const id = await submit("one", both.key);
  const token = await tokenOf(id, ben);
  for (const { key } of [child, grandchild]) {
    assert.equal(await tokenOf(id, key), undefined);
    const refused = await service.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve: true } });
    assert.deepEqual(said(refused), [403, "SELF_APPROVAL"]);
    assert.match(refused.body.detail, /made this key/);
  }
  assert.deepEqual(said(await vote(id, ben)), [200, "approved"]);
});

test("concurrent votes of related keys count once", async () => {
  const keys = await Promise.all([1, 2, 3, 4].map(async () => (await makeKey(ada)).key));
  const id = await submit("two");
  const answers = await Promise.all(keys.map((key) => vote(id, key)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  assert.equal((await service.storage.action(id))?.status, "pending_approval");
});

test("a key that can create approvers is reported", async () => {
  const make = (body: object): Promise<Answer> =>
    service.call("POST", "/v1/api-keys", { key: ada, body: { name: `key ${++n}`, ...body } });
  assert.deepEqual((await make({ preset: "agent" })).body.warnings, []);
  assert.deepEqual((await make({ preset: "approver", owner: await addPerson(service, "o") })).body.warnings, []);
  for (const more of [{ preset: "admin" }, { scopes: ["keys:manage", "approvals:decide"] }])
    assert.match((await make({ owner: person("o"), ...more })).body.warnings[0], /create keys that approve/);
});

test("a key that was changed in the store, or whose creator was changed there, cannot vote", async () => {
  const keys = raw.tables.find(({ name }) => name === "api_keys");
  assert.ok(keys !== undefined);
  const set = async (id: string, column: string, value: string | number | null): Promise<void> => {
    const row = (await raw.rows(keys)).find((one) => one["id"] === id);
    assert.ok(row !== undefined);
    await raw.set(keys, row, column, value);
    // Changing another key evicts this one from the cache.
    await makeKey(ada, { preset: "agent" });
  };
  const { id: viewer, key } = await makeKey(ada, { preset: "auditor" });
  const gone = await makeKey(ada);
  await service.call("DELETE", `/v1/api-keys/${gone.id}`, { key: ada });
  for (const [of, column, value, was, value_of] of [
    [
      viewer,
      "scopes",
      '["actions:read","approvals:decide"]',
      JSON.stringify((await service.storage.key(viewer))?.scopes),
      key,
    ],
    [gone.id, "revoked_at", null, (await service.storage.key(gone.id))?.revoked_at ?? null, gone.key],
  ] as const) {
    const id = await submit("one");
    await set(of, column, value);
    const refused = await vote(id, value_of);
    assert.deepEqual(said(refused), [409, "KEY_ALTERED"]);
    assert.match(refused.body.detail, new RegExp(column));
    await set(of, column, was);
    assert.equal((await service.storage.action(id))?.status, "pending_approval");
  }
  const [first, second] = [await makeKey(ada), await makeKey(ada)];
  await set(second.id, "created_by", null);
  const id = await submit("two");
  assert.deepEqual(said(await vote(id, first.key)), [200, "pending_approval"]);
  assert.deepEqual(said(await vote(id, second.key)), [409, "KEY_ALTERED"]);
  const maker = (await service.runtime.host.ledger.transact(async (tx) => tx.keys())).find(
    ({ name }) => name === "ada",
  );
  await set(second.id, "created_by", maker?.id ?? null);
});

test("a row that was altered while the request was admitted, and restored before the lock, has no effect", async () => {
  const { ledger } = service.runtime.host;
  const { id } = await makeKey(ada, { preset: "agent" });
  const row = (await service.storage.key(id)) ?? assert.fail("there is no key");
  const { epoch } = await service.storage.head();
  await makeKey(ada, { preset: "agent" });
  const confirm = (key: typeof row): Promise<string> =>
    ledger.transact(async (tx) => (await tx.confirm(toCredential(key, epoch, createGroupService({})))).key.id);
  assert.equal(await confirm(row), id);
  for (const more of [{ hash: "0".repeat(64) }, { scopes: [...row.scopes, "keys:manage"] }])
    await assert.rejects(confirm({ ...row, ...more }), { code: "KEY_ALTERED" });
});

test("if key creators are trusted, votes are counted by owner", async () => {
  const trusting = await startService({
    policy: ASKING,
    change: (config) => (config.approvals.trust_key_makers = true),
  });
  try {
    const own = service;
    service = trusting;
    try {
      const [first, second] = [await makeKey(trusting.admin), await makeKey(trusting.admin)];
      const id = await submit("two");
      assert.deepEqual(said(await vote(id, first.key)), [200, "pending_approval"]);
      assert.deepEqual(said(await vote(id, second.key)), [200, "approved"]);
    } finally {
      service = own;
    }
  } finally {
    await trusting.close();
  }
});

test("the audit lists live keys that can approve and create approvers, or that have no owner", async () => {
  const revoked = await makeKey(ada, { preset: "admin" });
  await service.call("DELETE", `/v1/api-keys/${revoked.id}`, { key: ben });
  const both = await makeKey(ada, { preset: "admin" });
  const { warnings, faults } = await auditStore(service.storage, service.runtime.host.ledger.vkey);
  assert.deepEqual(faults, []);
  assert.ok(warnings.some((line) => line.includes(both.id) && line.endsWith("create keys that approve")));
  assert.ok(warnings.some((line) => line.includes('"ada"') && line.endsWith("has no owner")));
  assert.ok(!warnings.some((line) => line.includes(revoked.id)));
});

const EDITABLE = `policy: editable
rules:
  - { name: pay, effect: require_approval, approval: { editable: { params.amount: { min: 1, max: 100 } } } }
`;

test(
  "an edit that no one else could approve is refused, and each refusal after an edit gives the true reason",
  needs("edits"),
  async (t) => {
    const fresh = await startService({ policy: EDITABLE });
    t.after(() => fresh.close());
    const submitPay = async (): Promise<string> => {
      const body = { agent_id: "bot", tool: "t", operation: "pay", params: { amount: 50 } };
      return (await fresh.call("POST", "/v1/actions", { body })).body.id as string;
    };
    const read = async (id: string, key: string) => (await fresh.call("GET", `/v1/actions/${id}`, { key })).body;
    const edit = async (id: string, key: string): Promise<Answer> => {
      const { approval_token: token } = await read(id, key);
      return fresh.call("POST", `/v1/actions/${id}/edit`, { key, body: { token, changes: { "params.amount": 5 } } });
    };
    const approve = async (id: string, key: string): Promise<Answer> => {
      const { approval_token: token } = await read(id, key);
      return fresh.call("POST", `/v1/actions/${id}/approval`, { key, body: { token, approve: true } });
    };
    const make = async (name: string, maker: string): Promise<string> =>
      (await makeKeyOn(fresh, { name, preset: "approver" }, maker)).key;

    // A new installation: the admin key, and keys that it created.
    const [child, sibling] = [await make("child", fresh.admin), await make("sibling", fresh.admin)];
    const first = await submitPay();
    for (const key of [fresh.admin, child]) {
      const { status, body } = await edit(first, key);
      assert.deepEqual([status, body.code], [403, "EDIT_NOT_ALLOWED"]);
      assert.match(
        body.detail,
        /no one else could approve the changed request: no other user has enrolled who can approve it, and each other key/,
      );
    }
    assert.equal((await approve(first, fresh.admin)).body.status, "approved", "the refused edit left no trace");

    const other = (await fresh.runtime.createAdminKey("other")).key;
    const ONE =
      /you and the person who changed this request count as one: one key created the other, or both have a common/;
    for (const [editor, voter, reason] of [
      [fresh.admin, fresh.admin, /^you changed this request, so someone else must approve it$/],
      [fresh.admin, child, ONE],
      [child, fresh.admin, ONE],
      [child, sibling, ONE],
    ] as const) {
      const id = await submitPay();
      const edited = await edit(id, editor);
      assert.equal(edited.status, 200, JSON.stringify(edited.body));
      const { approval_terms } = await read(id, voter);
      const voted = await approve(id, voter);
      assert.deepEqual([voted.status, voted.body.code], [403, "APPROVER_NOT_ELIGIBLE"], JSON.stringify(voted.body));
      for (const detail of [approval_terms.blocked.detail, voted.body.detail]) {
        assert.match(detail, reason);
        assert.doesNotMatch(detail, /groups/);
      }
      assert.equal((await approve(id, other)).body.status, "approved");
    }
  },
);
