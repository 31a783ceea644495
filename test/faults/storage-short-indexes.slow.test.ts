/** Lists by less: what replaces the indexes of the schema before finds the same, and those go when nobody reads by them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { sqliteDialect } from "../../src/storage/sql/dialects/sqlite.ts";
import { MIGRATIONS } from "../../src/storage/sql/migrations.ts";
import { createSqlStorage } from "../../src/storage/sql/storage.ts";
import { sqliteEngine } from "../../plugins/storage-sqlite/engine.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { actionRow, entryRow, headRow, hexOf, T0 } from "../../src/testing/suite/rows.ts";
import { rawSqlite } from "../support/raw-store.ts";
import { temporaryFolder } from "./children/spawn.ts";
import { ENGINES, stopEngines, tableOf } from "../support/engines.ts";

after(stopEngines);

const BEFORE = 23;
const DAY = 86_400_000;
const BOTH = ["actions_startable", "entries_of_action"];
const GO = ["actions_open_startable", "entries_by_action"];
const LONG = ["actions_by_request", "actions_by_submitter"];
const OLD = [...GO, ...LONG].sort();
const KEYS = ["019a0000-0000-7000-8000-000012340001", "019a0000-0000-7000-8000-000012340002"] as const;
const HASH = hexOf("asked for again and again");

async function fill(storage: Storage): Promise<void> {
  const actions = Array.from({ length: 40 }, (_, n) =>
    actionRow(n, {
      submitted_by: KEYS[n % 2] as string,
      approved_until: T0 + n,
      ...(n % 5 === 0 ? { request_hash: HASH } : {}),
    }),
  );
  const decisions = actions.map(({ id }, n) => entryRow(n, { action_id: id }));
  const later = actions.map(({ id }, n) => entryRow(40 + n, { action_id: id, type: "execution" }));
  await storage.write(async (tx) => {
    for (const row of actions) await tx.insertAction(row);
    await tx.append([...decisions, ...later], [], headRow(80));
  });
}

async function reads(storage: Storage): Promise<unknown[]> {
  const own = { visibility: { key_id: KEYS[1] }, limit: 50 } as const;
  return [
    await storage.actions(own),
    await storage.actions({ ...own, request_hash: HASH }),
    await storage.actions({ visibility: { all: true }, status: "allowed", tool: "stripe", limit: 50 }),
    await storage.openAction(KEYS[0], HASH, T0),
    await storage.startableActions("allowed", { approved_until: T0 + 7, decision_seq: 7 }, 9),
    await storage.entriesOfAction("action-7"),
  ];
}

for (const { name, skip, place } of ENGINES) {
  describe(`short indexes on ${name}`, { skip }, () => {
    it("are made of a store of the schema before, go on after a step that failed, and replace what its processes need no more", async (t) => {
      const at = await place();
      const short = [...BOTH, ...(name === "SQLite" ? ["actions_by_hash", "actions_by_key"] : LONG)].sort();
      const indexes = async (): Promise<string[]> => {
        const rows = (await at.all(
          name === "SQLite"
            ? "select name from sqlite_schema where type = 'index'"
            : "select indexname as name from pg_indexes where schemaname = 'public'",
        )) as { name: string }[];
        return rows.map((row) => row.name).filter((index) => [...OLD, ...short].includes(index));
      };
      const older = at.storage({ migrations: MIGRATIONS.slice(0, BEFORE) });
      await older.open();
      await fill(older);
      // By no index of these steps.
      const rows = await reads(older);
      await older.close();
      assert.deepEqual((await indexes()).sort(), OLD);
      const raw = await at.raw();
      t.after(() => raw.close());
      const steps = tableOf(raw, "schema_migrations");
      for (const step of await raw.rows(steps)) await raw.set(steps, step, "applied_at", Date.now() - 3 * DAY);

      const [, last] = MIGRATIONS.slice(BEFORE);
      assert.ok(last !== undefined);
      const statements: typeof last.statements = (kit) => [...last.statements(kit), "insert into nowhere values (1)"];
      const cut = at.storage({ migrations: [...MIGRATIONS.slice(0, BEFORE + 1), { ...last, statements }] });
      await assert.rejects(cut.open(), /nowhere/);
      assert.ok((await indexes()).includes("entries_by_action"), "the step left nothing behind");

      for (let starts = 0; starts < 2; starts++) {
        const newer = at.storage();
        await newer.open();
        assert.deepEqual(await reads(newer), rows);
        await newer.upkeep?.(250);
        await newer.close();
      }
      // A process of the version before may still read by them where it shares the store.
      assert.deepEqual((await indexes()).sort(), name === "SQLite" ? short : [...GO, ...short].sort());
      for (const step of await raw.rows(steps)) await raw.set(steps, step, "applied_at", Date.now() - 2 * DAY);
      const newer = at.storage();
      t.after(() => newer.close());
      await newer.open();
      await newer.upkeep?.(250);
      assert.deepEqual((await indexes()).sort(), short);
      assert.deepEqual(await reads(newer), rows);
    });
  });
}

it("on an engine of SQLite's kind that several processes share, all that those of before read by stays for a day", async (t) => {
  const path = join(temporaryFolder(), "assent.db");
  const own = sqliteEngine(path, 20);
  const storage = (migrations?: typeof MIGRATIONS): Storage =>
    createSqlStorage({ ...own, exclusive: false }, sqliteDialect, migrations === undefined ? {} : { migrations });
  const older = storage(MIGRATIONS.slice(0, BEFORE));
  await older.open();
  await fill(older);
  const rows = await reads(older);
  await older.close();
  const raw = await rawSqlite(path);
  t.after(() => raw.close());
  const steps = tableOf(raw, "schema_migrations");
  for (const step of await raw.rows(steps)) await raw.set(steps, step, "applied_at", Date.now() - 3 * DAY);
  for (const over of [false, true]) {
    const newer = storage();
    await newer.open();
    assert.deepEqual(await reads(newer), rows);
    await newer.upkeep?.(250);
    const left = await own.query("select name from sqlite_schema where type = 'index'", []);
    assert.deepEqual(
      left
        .map((row) => String(row["name"]))
        .filter((index) => OLD.includes(index))
        .sort(),
      over ? [] : OLD,
    );
    await newer.close();
    for (const step of await raw.rows(steps)) await raw.set(steps, step, "applied_at", Date.now() - 2 * DAY);
  }
});
