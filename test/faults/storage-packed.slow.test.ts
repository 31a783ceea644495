/** Ids and hashes as bytes and what decisions have in common once: nobody above the store sees it, nor a store of before. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/library.ts";
import type { ActionRow, Storage } from "../../src/contract/storage.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { actionRow, approvalRow, entryRow, headRow, hexOf, T0 } from "../../src/testing/suite/rows.ts";
import { ALLOWED, startService } from "../support/service.ts";
import { start, temporaryFolder } from "./children/spawn.ts";

const { DatabaseSync } = await loadSqlite();
const placed = (): string => join(temporaryFolder(), "assent.db");
const idOf = (n: number): string => `019a0000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
const KEY = idOf(0xabcdef);
const HASH = hexOf("asked for by many");
const SET = hexOf("policies");

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

/** Through the triggers and checks. */
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

/** Ids and hashes in every form that somebody may have given them, each kind of decision several times, and reasons of their own. */
const ODD: Partial<ActionRow>[] = [
  ...Array.from({ length: 6 }, (_, n) => ruled(n)),
  { id: idOf(0xfe).toUpperCase(), submitted_by: KEY.toUpperCase() },
  { id: idOf(0xfe) },
  { id: "no uuid", submitted_by: "admin" },
  { id: idOf(0xff).replaceAll("-", "") },
  { id: `${idOf(0xfd).slice(0, -1)}g`, submitted_by: "" },
  { id: `${idOf(0xfd)} `, submitted_by: "\u0000\u0001" },
  { id: idOf(0xfc), request_hash: HASH.toUpperCase(), salt: "ab", policy_hash: "" },
  { id: idOf(0xfb), request: "", request_hash: "", salt: "", erased_at: T0 },
  { id: idOf(0xfa), request_hash: HASH, submitted_by: KEY, approved_until: T0 + 5 },
  {
    id: idOf(0xf9),
    request_hash: HASH,
    submitted_by: KEY,
    approved_until: T0 + 9,
    status: "pending_approval",
    expires_at: T0 + 9,
    quorum: 1,
  },
  ...Array.from({ length: 3 }, (_, n) => ({ ...ruled(0), id: idOf(0xe0 + n), reason: `said of ${n} alone` })),
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
  it("stand in one form each: the tables refuse the other, and the audit tells where the checks were off", async () => {
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
      "update actions set kind = null where decision_seq = 4",
      "update actions set kind = 999 where decision_seq = 4",
      "update actions set rule = 'another' where decision_seq = 4",
      "update actions set kind = 1 where decision_seq = 0",
      `update approvals set action_id = '${idOf(5)}'`,
      "update action_kinds set kind_reason = 'x'",
      "delete from action_kinds",
      "insert or replace into action_kinds (number, kind_decision, kind_reason, kind_reason_code) values (1, 'allow', 'x', 'x')",
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
      assert.deepEqual(await storage.inspect?.(), [
        "SQLite's integrity check: CHECK constraint failed in actions",
        "1 rows of actions are not of the form that they are looked for in",
      ]);
      change(
        path,
        `pragma ignore_check_constraints = on; update actions set ${column} = (select ${column} from actions where decision_seq = 3) where decision_seq = 1 and '${column}' <> 'id'`,
      );
      change(path, "update actions set id = unhex('00000000000000000000000000000077') where decision_seq = 1");
    }
    assert.deepEqual(await storage.inspect?.(), []);
    await storage.close();
  });

  it("have the kinds of transactions that were committed alone, and reasons of their own once they change", async () => {
    const path = placed();
    const storage = sqliteStorage({ path });
    await storage.open();
    const insert = (from: number, to: number, fails = false) =>
      storage.write(async (tx) => {
        for (let n = from; n < to; n++) await tx.insertAction(actionRow(n, ruled(n * 2)));
        if (fails) throw new Error("given up");
      });
    await insert(0, 1);
    await assert.rejects(insert(1, 4, true), /given up/);
    assert.deepEqual(all(path, "select * from action_kinds"), []);
    // Another takes the number that was given up.
    await storage.write(async (tx) => {
      for (const n of [10, 11]) await tx.insertAction(actionRow(n, ruled(n * 2 + 1)));
    });
    await insert(1, 4);
    const rows = async () =>
      Promise.all([0, 1, 2, 3, 10, 11].map(async (n) => storage.action(idOf(n < 10 ? n * 2 : n * 2 + 1))));
    const wanted = [0, 1, 2, 3]
      .map((n) => actionRow(n, ruled(n * 2)))
      .concat([10, 11].map((n) => actionRow(n, ruled(n * 2 + 1))));
    assert.deepEqual(await rows(), wanted);
    assert.equal(all(path, "select * from action_kinds").length, 2);
    await storage.close();
    await storage.open();
    await insert(4, 6);
    assert.equal(all(path, "select * from action_kinds").length, 2, "they are found again");
    await storage.write(async (tx) => {
      const change = {
        status: "cancelled",
        updated_at: T0 + 50,
        reason: "a person spoke",
        reason_code: "AGENT_SUSPENDED",
      } as const;
      assert.equal(await tx.updateAction(idOf(4), { status: "allowed" }, change), true);
    });
    assert.deepEqual(await storage.action(idOf(4)), {
      ...wanted[2],
      status: "cancelled",
      updated_at: T0 + 50,
      reason: "a person spoke",
      reason_code: "AGENT_SUSPENDED",
    });
    assert.deepEqual(await storage.action(idOf(6)), wanted[3], "the others of its kind say what they said");
    await storage.close();
  });
});

describe("SIGKILL", () => {
  it("inside what is put off loses nothing: every entry is as it was, and it goes on where it stood", async () => {
    const path = placed();
    const service = await startService({ storage: () => sqliteStorage({ path, keep: 100_000 }) });
    for (let done = 0; done < 2600; done += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          service.call("POST", "/v1/actions", { body: { ...ALLOWED, context: { i: done + i } } }),
        ),
      );
    const entries = await service.storage.entries(0, 3000);
    const vkey = (await service.storage.meta("log_vkey")) ?? undefined;
    await service.close();
    const bundles = () => Number(all<{ n: number }>(path, "select count(*) as n from entry_bundles")[0]?.n);
    const seen = new Set<number>();
    for (let i = 0; i < 8; i++) {
      const player = start("upkeep", path);
      assert.equal(await player.next(), "open");
      await player.next();
      await sleep(Math.random() * 15);
      await player.kill();
      seen.add(bundles());
      const storage = sqliteStorage({ path });
      await storage.open({ readOnly: true });
      assert.deepEqual(await storage.entries(0, 3000), entries);
      assert.deepEqual((await auditStore(storage, vkey)).faults, []);
      await storage.close();
    }
    assert.ok(seen.size > 1, "some were made before it was killed");
    const player = start("upkeep", path);
    for (let word = ""; word !== "done";) word = await player.next();
    assert.equal(bundles(), 10);
    const storage = sqliteStorage({ path });
    await storage.open();
    assert.deepEqual(await storage.entries(0, 3000), entries);
    assert.deepEqual((await auditStore(storage, vkey)).faults, []);
    await storage.close();
  });
});
