/** Ids and hashes as bytes and what decisions have in common once: nobody above the store sees it, nor a store of before. */
import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { MIGRATIONS } from "../../src/storage/sql/migrations.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/library.ts";
import type { ActionRow, Storage } from "../../src/contract/storage.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { actionRow, approvalRow, entryRow, headRow, hexOf, T0 } from "../../src/testing/suite/rows.ts";
import { ALLOWED, startService } from "../support/service.ts";
import { rawSqlite } from "../support/raw-store.ts";
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

/** Without an order, which counts of one size have none of. */
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map((one) => JSON.stringify(one)).sort()
    : typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, sorted(one)]))
      : value;

/** What can be asked, by everything in the rows and by what only looks like it. */
async function answers(storage: Storage): Promise<unknown[]> {
  const given: unknown[] = [];
  const ids = [...ROWS.map(({ id }) => id), idOf(1).toUpperCase(), idOf(0xff), "", "nobody"];
  for (const id of ids)
    given.push(
      await storage.action(id),
      await storage.approvals(id),
      (await storage.entriesOfAction(id)).map(({ seq }) => seq),
    );
  given.push((await storage.actionsById(ids)).sort((a, b) => a.decision_seq - b.decision_seq));
  for (const key_id of [KEY, KEY.toUpperCase(), "key-1", "admin", "", "\u0000\u0001", "nobody"]) {
    const visibility = { key_id };
    given.push(
      await storage.actions({ visibility, limit: 50 }),
      await storage.actions({ visibility, limit: 50, since: T0, until: T0 + 9, status: "allowed" }),
      await storage.actions({ visibility, limit: 50, request_hash: HASH }),
      await storage.pendingCount(visibility, T0),
      await storage.pendingActions(visibility, { expires_at: 0, decision_seq: 0 }, 9),
      (await storage.decisions({ visibility, from_seq: 0, before_seq: 99, since: 0, until: T0 + 99, limit: 9 })).length,
      sorted(await storage.analytics({ visibility, boundaries: [T0 - 7, T0 + 8, T0 + 99] })),
      await storage.openAction(key_id, HASH, T0 + 6),
      await storage.openAction(key_id, HASH, T0),
    );
  }
  for (const request_hash of [HASH, HASH.toUpperCase(), "", "ab", hexOf("request 2")])
    given.push(await storage.actions({ visibility: { all: true }, limit: 50, request_hash }));
  for (const table of ["actions", "approvals"] as const) {
    const rows = [];
    for (let last = null; ;) {
      const page = (await storage.copying?.read(table, last, 4)) ?? [];
      if (page.length === 0) break;
      rows.push(...page);
      last = page.at(-1) as never;
    }
    given.push(rows.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)));
  }
  return given;
}

describe("packed actions", () => {
  for (const before of [21, 25])
    it(`of a store of schema ${before} are what they were, whatever asks, and so are new ones beside them`, async () => {
      const [path, fresh] = [placed(), placed()];
      const older = sqliteStorage({ path, migrations: MIGRATIONS.slice(0, before) });
      await older.open();
      await fill(older);
      const was = await answers(older);
      await older.close();
      for (const [at, filled] of [
        [path, true],
        [fresh, false],
      ] as const) {
        const storage = sqliteStorage({ path: at });
        await storage.open();
        if (!filled) await fill(storage);
        assert.deepEqual(await answers(storage), was);
        assert.deepEqual(await storage.inspect?.(), []);
        while (((await storage.upkeep?.(5)) ?? 0) > 0);
        assert.deepEqual(await answers(storage), was);
        await storage.close();
        assert.deepEqual(all(at, "pragma foreign_key_check"), []);
        assert.deepEqual(all(at, "pragma integrity_check"), [{ integrity_check: "ok" }]);
        const forms = all(
          at,
          "select typeof(id) as id, typeof(submitted_by) as by, typeof(request_hash) as hash, kind from actions order by decision_seq",
        );
        assert.deepEqual(
          { ...forms[5], kind: typeof forms[5]?.["kind"] },
          { id: "blob", by: "blob", hash: "blob", kind: "number" },
        );
        assert.deepEqual(forms[8], { id: "text", by: "text", hash: "blob", kind: forms[8]?.["kind"] });
        // What was said of one alone is no kind.
        assert.deepEqual(
          forms.slice(16).map(({ kind }) => kind),
          [null, null, null],
        );
      }
      const shape = (at: string) =>
        all(
          at,
          "select type, name, sql from sqlite_schema where tbl_name in ('actions', 'approvals', 'action_kinds') and name not like 'sqlite_%' order by name",
        );
      assert.deepEqual(shape(path), shape(fresh), "a store that was brought here is as a new one");
    });

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

  it("pass the audit before and after, and one that was altered does not", async (t) => {
    const path = placed();
    const older = await startService({ storage: () => sqliteStorage({ path, migrations: MIGRATIONS.slice(0, 25) }) });
    for (let i = 0; i < 40; i++) await older.call("POST", "/v1/actions", { body: { ...ALLOWED, context: { i } } });
    const vkey = (await older.storage.meta("log_vkey")) ?? undefined;
    assert.deepEqual((await auditStore(older.storage, vkey)).faults, []);
    await older.close();
    const storage = sqliteStorage({ path });
    await storage.open();
    t.after(() => storage.close());
    const faults = async () => (await auditStore(storage, vkey)).faults;
    assert.deepEqual(await faults(), []);
    const raw = await rawSqlite(path);
    t.after(() => raw.close());
    const kinds = all(path, "select number from action_kinds");
    assert.equal(kinds.length, 1);
    change(path, "update action_kinds set kind_reason = 'another'");
    assert.ok((await faults()).length >= 20, "each action of the kind says it");
  });
});

describe("SIGKILL", () => {
  const N = 12_000;
  const rows = Array.from({ length: N }, (_, n) => actionRow(n, { ...ruled(n), decision_seq: n }));

  it("in the middle of the step that packs a store leaves it as it was, and the next start makes it", async () => {
    const path = placed();
    const older = sqliteStorage({ path, migrations: MIGRATIONS.slice(0, 24) });
    await older.open();
    await older.write(async (tx) => {
      for (const row of rows) await tx.insertAction(row);
    });
    await older.close();
    const version = () =>
      all<{ version: number }>(path, "select max(version) as version from schema_migrations")[0]?.version;
    const wal = () => (existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0);
    let inside = 0;
    for (let most = 0; most < 8_000_000; most += 1_000_000) {
      if (version() === MIGRATIONS.length) break;
      const player = start("migrate", path);
      assert.equal(await player.next(), "open");
      // Of a transaction that is not over its pages stand there once the cache is full.
      while (player.process.exitCode === null && wal() <= most) await sleep(1);
      await player.kill();
      const at = version();
      assert.ok(at !== undefined && at >= 24);
      if (wal() > 0 && at === 26) inside++;
      assert.deepEqual(all(path, "pragma integrity_check"), [{ integrity_check: "ok" }]);
      const tables = all(
        path,
        "select name from sqlite_schema where name in ('actions_27', 'approvals_27', 'kinds_27')",
      );
      assert.deepEqual(tables, []);
    }
    assert.ok(inside > 0, "it was killed inside the step");
    const storage = sqliteStorage({ path });
    await storage.open();
    assert.deepEqual(await storage.schema(), { applied: MIGRATIONS.length, known: MIGRATIONS.length });
    for (let before = N; before > 0; before -= 1000)
      assert.deepEqual(
        await storage.actions({ visibility: { all: true }, before_seq: before, limit: 1000 }),
        rows.slice(before - 1000, before).reverse(),
      );
    await storage.close();
  });

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
