/**
 * SQLite stores ids and hashes of actions as bytes. Reads return the original strings, and each string has exactly one
 * stored form.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import type { ActionRow, Storage } from "../../src/contract/storage.ts";
import { actionRow, approvalRow, entryRow, headRow, leafHashHex, BASE_TIME } from "../../src/testing/suite/rows.ts";
import { storeFolder } from "./children/spawn.ts";

const { DatabaseSync } = await loadSqlite();
const placed = (): string => join(storeFolder(), "assent.db");
const idOf = (n: number): string => `019a0000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
const KEY = idOf(0xabcdef);
const HASH = leafHashHex("asked for by many");
const SET = leafHashHex("policies");

function all<Row = Record<string, unknown>>(path: string, sql: string): Row[] {
  const db = new DatabaseSync(path);
  try {
    return db
      .prepare(sql)
      .all()
      .map((row) => ({ ...(row as Row) }));
  } finally {
    db.close();
  }
}

/** Runs SQL with triggers and checks enabled. */
function change(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  try {
    db.exec(`pragma foreign_keys = on; ${sql}`);
  } finally {
    db.close();
  }
}

const ruled = (n: number): Partial<ActionRow> => ({
  id: idOf(n),
  submitted_by: KEY,
  policy: "payments",
  rule: n % 2 === 0 ? "small" : "large",
  policy_version: 3,
  policy_hash: SET,
  reason: n % 2 === 0 ? "small ones go" : "large ones wait",
});

/** Ids and hashes that are packed, and others that almost have the packed form. */
const ODD: Partial<ActionRow>[] = [
  ...Array.from({ length: 6 }, (_, n) => ruled(n)),
  { id: idOf(0xfe).toUpperCase(), submitted_by: KEY.toUpperCase() },
  { id: idOf(0xfe) },
  { id: "no uuid", submitted_by: "admin" },
  { id: idOf(0xff).replaceAll("-", "") },
  { id: `${idOf(0xfd).slice(0, -1)}g`, submitted_by: "" },
  { id: `${idOf(0xfd)} `, submitted_by: "\u0000\u0001" },
  { id: idOf(0xfc), request_hash: HASH.toUpperCase(), salt: "ab", policy_hash: "" },
  { id: idOf(0xfb), request: "", request_hash: "", salt: "", erased_at: BASE_TIME },
  { id: idOf(0xfa), request_hash: HASH, submitted_by: KEY, approved_until: BASE_TIME + 5 },
  {
    id: idOf(0xf9),
    request_hash: HASH,
    submitted_by: KEY,
    approved_until: BASE_TIME + 9,
    status: "pending_approval",
    expires_at: BASE_TIME + 9,
    quorum: 1,
  },
];
const ROWS = ODD.map((over, n) => actionRow(n, over));

async function fill(storage: Storage): Promise<void> {
  await storage.write(async (tx) => {
    for (const row of ROWS) await tx.insertAction(row);
    await tx.append(
      ROWS.map(({ id, submitted_by }, n) => entryRow(n, { action_id: id, submitted_by })),
      [],
      headRow(ROWS.length),
    );
    for (const { id } of ROWS.slice(4, 10)) await tx.insertApproval(approvalRow(id, "Anna"));
  });
}

describe("packed actions", () => {
  it("are returned exactly as they were written, and found only by the same string", async () => {
    const path = placed();
    const storage = sqliteStorage({ path });
    await storage.open();
    await fill(storage);
    for (const row of ROWS) assert.deepEqual(await storage.action(row.id), row);
    const ids = ROWS.map(({ id }) => id);
    const found = await storage.actionsById([...ids, idOf(1).toUpperCase(), idOf(0xff), "", "no one"]);
    assert.deepEqual(
      found.sort((a, b) => a.decision_seq - b.decision_seq),
      ROWS,
    );
    for (const key_id of [KEY, KEY.toUpperCase(), "admin", "", "\u0000\u0001"])
      assert.deepEqual(
        await storage.actions({ visibility: { key_id }, limit: 50 }),
        ROWS.filter((row) => row.submitted_by === key_id).reverse(),
      );
    for (const request_hash of [HASH, HASH.toUpperCase(), ""])
      assert.deepEqual(
        await storage.actions({ visibility: { all: true }, limit: 50, request_hash }),
        ROWS.filter((row) => row.request_hash === request_hash).reverse(),
      );
    assert.equal((await storage.openAction(KEY, HASH, BASE_TIME + 3))?.id, idOf(0xfa));
    assert.equal((await storage.openAction(KEY, HASH, BASE_TIME + 6))?.id, idOf(0xf9));
    assert.equal((await storage.approvals(idOf(5))).length, 1);
    assert.deepEqual(await storage.copying?.read("actions", null, 50), ROWS);
    await storage.close();
    const forms = all(
      path,
      "select typeof(id) as id, typeof(submitted_by) as by, typeof(request_hash) as hash from actions",
    );
    assert.deepEqual(forms[5], { id: "blob", by: "blob", hash: "blob" });
    assert.deepEqual(forms[8], { id: "text", by: "text", hash: "blob" });
  });

  it("have one stored form each: the tables reject any other, and the audit reports rows that were written without checks", async () => {
    const path = placed();
    const storage = sqliteStorage({ path });
    await storage.open();
    await fill(storage);
    for (const sql of [
      `update actions set id = '${idOf(0x77)}' where decision_seq = 1`,
      `update actions set submitted_by = '${KEY}' where decision_seq = 1`,
      `update actions set request_hash = '${HASH}' where decision_seq = 1`,
      "update actions set salt = x'00' where decision_seq = 1",
      "update actions set id = 7 where decision_seq = 1",
      `update approvals set action_id = '${idOf(5)}'`,
    ])
      assert.throws(() => change(path, sql), /CHECK|FOREIGN|append-only|constraint/, sql);
    for (const [column, value] of [
      ["id", idOf(0x77)],
      ["submitted_by", KEY],
      ["request_hash", HASH],
    ]) {
      change(
        path,
        `pragma ignore_check_constraints = on; update actions set ${column} = '${value}' where decision_seq = 1`,
      );
      assert.deepEqual(await storage.inspect?.(), ["SQLite's integrity check: CHECK constraint failed in actions"]);
      change(
        path,
        `pragma ignore_check_constraints = on; update actions set ${column} = (select ${column} from actions where decision_seq = 3) where decision_seq = 1 and '${column}' <> 'id'`,
      );
      change(path, "update actions set id = unhex('00000000000000000000000000000077') where decision_seq = 1");
    }
    assert.deepEqual(await storage.inspect?.(), []);
    await storage.close();
  });
});
