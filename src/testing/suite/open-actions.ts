/** Cases for open actions, for rejections that are in force, and for the columns about duplicate requests. */
import assert from "./assert.ts";
import type { ActionOwner, ActionRow } from "../../contract/storage.ts";
import { actionRow, leafHashHex, BASE_TIME, type DefineCase } from "./rows.ts";

const HASH = leafHashHex("the request");
const row = (n: number, overrides: Partial<ActionRow>): ActionRow => actionRow(n, { request_hash: HASH, ...overrides });
const waits = (n: number, expires_at: number, overrides: Partial<ActionRow> = {}): ActionRow =>
  row(n, { status: "pending_approval", decision: "require_approval", expires_at, ...overrides });
const mayStart = (n: number, end: number, overrides: Partial<ActionRow> = {}): ActionRow =>
  row(n, { approved_until: end, ...overrides });

export function openActionCases(test: DefineCase): void {
  test("openAction prefers startable over pending actions, then the latest deadline, until the deadline has passed", async ({
    storage,
  }) => {
    const rows = [
      waits(0, BASE_TIME + 90),
      waits(1, BASE_TIME + 95),
      waits(2, BASE_TIME + 92),
      mayStart(3, BASE_TIME + 20, { status: "approved" }),
      mayStart(4, BASE_TIME + 30),
      mayStart(5, BASE_TIME + 30, { status: "approved" }),
      mayStart(6, BASE_TIME + 10),
    ];
    await storage.write(async (tx) => {
      for (const each of rows) await tx.insertAction(each);
      assert.deepEqual(await tx.openAction("key-1", HASH, BASE_TIME), rows[5], "also within the same transaction");
    });
    for (const [now, n] of [
      [BASE_TIME, 5],
      [BASE_TIME + 29, 5],
      [BASE_TIME + 30, 1],
      [BASE_TIME + 94, 1],
    ] as const)
      assert.deepEqual(await storage.openAction("key-1", HASH, now), rows[n], String(now - BASE_TIME));
    assert.equal(await storage.openAction("key-1", HASH, BASE_TIME + 95), null);
  });

  test("keys and requests with the same beginning or end are distinguished", async ({ storage }) => {
    const keys = ["019a0000-0000-7000-8000-00001234abcd", "019b0000-0000-7000-8000-00001234abcd"] as const;
    const hashes = ["ab".repeat(32), `${"ab".repeat(31)}cd`, `cd${"ab".repeat(31)}`] as const;
    const pairs = keys.flatMap((submitted_by) => hashes.map((request_hash) => ({ submitted_by, request_hash })));
    const rows = pairs.map((pair, n) => mayStart(n, BASE_TIME + 99 - n, pair));
    await storage.write(async (tx) => {
      for (const each of rows) await tx.insertAction(each);
    });
    for (const [n, { submitted_by, request_hash }] of pairs.entries()) {
      assert.deepEqual(await storage.openAction(submitted_by, request_hash, BASE_TIME), rows[n]);
      const ownActions = await storage.actions({ visibility: { key_id: submitted_by }, request_hash, limit: 9 });
      assert.deepEqual(ownActions, [rows[n]]);
    }
    for (const key_id of keys) {
      const ownRows = rows.filter((each) => each.submitted_by === key_id).reverse();
      assert.deepEqual(await storage.actions({ visibility: { key_id }, limit: 9 }), ownRows);
    }
    const all = { visibility: { all: true }, limit: 9 } as const;
    assert.deepEqual(await storage.actions({ ...all, request_hash: hashes[1] }), [rows[4], rows[1]]);
    assert.deepEqual(await storage.actions({ ...all, request_hash: "ab".repeat(6) }), []);
    assert.equal(await storage.openAction(keys[0].slice(28), hashes[0], BASE_TIME), null);
  });

  test("an action of another key, of a different request, or after its deadline is not found as open", async ({
    storage,
  }) => {
    const endStatuses = ["denied", "expired", "cancelled", "executing", "succeeded", "failed"] as const;
    await storage.write(async (tx) => {
      await tx.insertAction(mayStart(0, BASE_TIME + 99, { submitted_by: "key-2" }));
      await tx.insertAction(waits(1, BASE_TIME + 99, { submitted_by: "key-2" }));
      await tx.insertAction(mayStart(2, BASE_TIME + 99, { request_hash: leafHashHex("another") }));
      for (const [n, status] of endStatuses.entries())
        await tx.insertAction(row(3 + n, { status, expires_at: BASE_TIME + 99, approved_until: BASE_TIME + 99 }));
      await tx.insertAction(mayStart(20, BASE_TIME + 99));
      assert.equal(await tx.eraseAction("action-20", BASE_TIME), true);
    });
    assert.equal(await storage.openAction("key-1", HASH, BASE_TIME), null);
    assert.equal((await storage.openAction("key-2", HASH, BASE_TIME))?.id, "action-0");
    await storage.write(async (tx) => {
      await tx.updateAction("action-0", { status: "allowed" }, { status: "executing", updated_at: BASE_TIME });
      assert.equal((await tx.openAction("key-2", HASH, BASE_TIME))?.id, "action-1");
    });
  });

  test("open actions of an agent, in any spelling of its name, and of a key are found until their deadline", async ({
    storage,
    reopen,
  }) => {
    const rows = [
      waits(0, BASE_TIME + 50),
      mayStart(1, BASE_TIME + 40),
      mayStart(2, BASE_TIME + 60, { status: "approved", agent_id: "AGENT-1" }),
      mayStart(3, BASE_TIME + 10, { agent_id: "Agent-1" }),
      waits(4, BASE_TIME + 60, { submitted_by: "key-2", authority: `{"id":"a-1","links":[]}` }),
      mayStart(5, BASE_TIME + 45, { agent_id: "agent-2" }),
      mayStart(6, BASE_TIME + 45, { agent_id: "ÉLAN", submitted_by: "key-2" }),
      row(7, { status: "cancelled", expires_at: BASE_TIME + 70, approved_until: BASE_TIME + 70 }),
      waits(8, BASE_TIME + 10),
    ];
    await storage.write(async (tx) => {
      for (const each of rows) await tx.insertAction(each);
      await tx.updateAction("action-1", { status: "allowed" }, { status: "executing", updated_at: BASE_TIME });
    });
    const reopened = await reopen();
    const open = async (owner: ActionOwner, limit = 9): Promise<string[]> =>
      (await reopened.openActionsOf(owner, BASE_TIME + 10, limit)).map(({ id }) => id).sort();
    for (const agent_id of ["agent-1", "Agent-1"])
      assert.deepEqual(await open({ agent_id }), ["action-0", "action-2", "action-4"], agent_id);
    assert.deepEqual(await open({ agent_id: "élan" }), ["action-6"]);
    assert.deepEqual(await open({ key_id: "key-1" }), ["action-0", "action-2", "action-5"]);
    assert.deepEqual(await open({ key_id: "key-2" }), ["action-4", "action-6"]);
    assert.deepEqual(await open({ agent_id: "nobody" }), []);
    assert.deepEqual(await open({ agent_id: "agent-1", authority: "a-1" }), ["action-4"]);
    assert.deepEqual(await open({ agent_id: "agent-1", authority: "a" }), []);
    assert.equal((await open({ key_id: "key-1" }, 2)).length, 2);
    const found = await reopened.openActionsOf({ agent_id: "élan" }, BASE_TIME, 9);
    assert.deepEqual(found, [rows[6]]);
  });

  test("the rejection that ends last is found by its submitted or changed request, until it ends", async ({
    storage,
    reopen,
  }) => {
    const other = leafHashHex("another");
    const rejected = (n: number, rejection_until: number | null, request_hash = HASH): ActionRow =>
      row(n, { status: "denied", decision: "require_approval", rejection_until, request_hash });
    const rows = [
      rejected(0, BASE_TIME + 10),
      rejected(1, BASE_TIME + 30),
      rejected(2, BASE_TIME + 20),
      rejected(3, null),
      rejected(4, BASE_TIME + 99, other),
      rejected(5, BASE_TIME + 98, "0".repeat(64)),
      rejected(6, BASE_TIME + 97, "f".repeat(64)),
    ];
    const changed = leafHashHex("changed by an approver");
    await storage.write(async (tx) => {
      for (const each of rows) await tx.insertAction(each);
      assert.deepEqual(await tx.rejectedAction(HASH, BASE_TIME), rows[1], "also within the same transaction");
      await tx.insertAction(waits(7, BASE_TIME + 99));
      const edited = {
        status: "pending_approval",
        effective: "{}",
        effective_hash: changed,
        updated_at: BASE_TIME,
      } as const;
      assert.equal(await tx.updateAction("action-7", { status: "pending_approval" }, edited), true);
      assert.equal(await tx.rejectedAction(changed, BASE_TIME), null, "no one has rejected the request yet");
      const denied = { status: "denied", rejection_until: BASE_TIME + 40, updated_at: BASE_TIME } as const;
      assert.equal(await tx.updateAction("action-7", { status: "pending_approval" }, denied), true);
      await tx.insertAction(rejected(8, BASE_TIME + 35, changed));
    });
    for (const hash of [HASH, changed]) assert.equal((await storage.rejectedAction(hash, BASE_TIME))?.id, "action-7");
    assert.equal((await storage.rejectedAction(changed, BASE_TIME + 39))?.effective_hash, changed);
    assert.equal(await storage.rejectedAction(changed, BASE_TIME + 40), null);
    await storage.write(async (tx) => {
      assert.equal(await tx.eraseAction("action-7", BASE_TIME), true);
    });
    assert.equal((await storage.rejectedAction(changed, BASE_TIME))?.id, "action-8");
    assert.deepEqual(await storage.rejectedAction(HASH, BASE_TIME + 29), rows[1]);
    assert.equal(await storage.rejectedAction(HASH, BASE_TIME + 30), null);
    assert.equal(await storage.rejectedAction(leafHashHex("a third"), BASE_TIME), null);
    await storage.write(async (tx) => {
      const lifted = { status: "denied", rejection_until: null, updated_at: BASE_TIME + 1 } as const;
      assert.equal(await tx.updateAction("action-1", { status: "denied" }, lifted), true);
      assert.equal(await tx.eraseAction("action-4", BASE_TIME), true);
    });
    const reopened = await reopen();
    assert.deepEqual(await reopened.rejectedAction(HASH, BASE_TIME), rows[2]);
    assert.equal(await reopened.rejectedAction(other, BASE_TIME), null);
  });

  test("asked_at and waits are set without other changes, and are rolled back with their transaction", async ({
    storage,
    reopen,
  }) => {
    const waits = '{"a":1}';
    await storage.write(async (tx) => {
      await tx.insertAction(row(0, {}));
      await tx.insertAction(row(1, {}));
      await tx.noteAsked("action-0", BASE_TIME + 5, waits);
      await tx.noteAsked("nobody", BASE_TIME + 5, null);
      assert.deepEqual(await tx.action("action-0"), row(0, { asked_at: BASE_TIME + 5, waits }));
    });
    await assert.rejects(
      storage.write(async (tx) => {
        await tx.noteAsked("action-0", BASE_TIME + 9, null);
        throw new Error("no");
      }),
      /^Error: no$/,
    );
    const reopened = await reopen();
    assert.deepEqual(await reopened.action("action-0"), row(0, { asked_at: BASE_TIME + 5, waits }));
    assert.deepEqual(await reopened.action("action-1"), row(1, {}));
    await reopened.write((tx) => tx.noteAsked("action-0", BASE_TIME + 6, null));
    assert.deepEqual(await reopened.action("action-0"), row(0, { asked_at: BASE_TIME + 6 }));
  });
}
