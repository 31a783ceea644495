/** Stores with an older, a newer or an incomplete schema. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { MIGRATIONS, type Migration } from "../../plugins/storage-sql/migrations.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import { StorageError } from "../../src/contract/storage.ts";
import { actionRow, appendEntries } from "../../src/testing/suite/rows.ts";
import { storeFolder } from "./children/spawn.ts";

const { DatabaseSync } = await loadSqlite();
const folder = storeFolder();
let files = 0;
const freshPath = (): string => join(folder, `${++files}`, "assent.db");

function later(version: number, ...statements: string[]): Migration {
  return { version, name: `step ${version}`, statements: () => statements };
}

function look(path: string, sql: string): unknown[] {
  const db = new DatabaseSync(path);
  try {
    return db
      .prepare(sql)
      .all()
      .map((row) => Object.values(row as object))
      .flat();
  } finally {
    db.close();
  }
}

async function openAndClose(path: string, migrations: readonly Migration[]): Promise<void> {
  const storage = sqliteStorage({ path, migrations });
  await storage.open();
  await storage.close();
}

const versions = "select version from schema_migrations order by version";
const known = MIGRATIONS.map((migration) => migration.version);
const next = known.length + 1;

describe("migrations", () => {
  it("are numbered from 1 without a gap", () => {
    assert.deepEqual(
      known,
      known.map((_, i) => i + 1),
    );
  });

  it("update an older store, in order, and keep its data", async () => {
    const path = freshPath();
    const older = sqliteStorage({ path });
    await older.open();
    await older.write(async (tx) => {
      await tx.insertAction(actionRow(0));
      await appendEntries(tx, 2);
    });
    await older.close();
    const newer = sqliteStorage({
      path,
      migrations: [
        ...MIGRATIONS,
        later(next, "create table first (n integer)"),
        later(next + 1, "alter table first add column m integer", "insert into first (n, m) values (1, 2)"),
      ],
    });
    await newer.open();
    assert.deepEqual(await newer.action("action-0"), actionRow(0));
    assert.equal((await newer.head()).size, 2);
    await newer.close();
    assert.deepEqual(look(path, versions), [...known, next, next + 1]);
    assert.deepEqual(look(path, "select n, m from first"), [1, 2]);
  });

  it("run once each", async () => {
    const path = freshPath();
    const migrations = [...MIGRATIONS, later(next, "create table once (n integer)", "insert into once values (1)")];
    for (let i = 0; i < 3; i++) await openAndClose(path, migrations);
    assert.deepEqual(look(path, "select n from once"), [1]);
  });

  it("that fail leave the store as the last complete step left it, and can be retried", async () => {
    const path = freshPath();
    const good = later(next, "create table good (n integer)");
    await openAndClose(path, MIGRATIONS);
    await assert.rejects(
      openAndClose(path, [
        ...MIGRATIONS,
        good,
        later(next + 1, "create table half (n integer)", "insert into nowhere values (1)"),
      ]),
      (error) => {
        assert.ok(error instanceof StorageError);
        assert.match(
          error.message,
          new RegExp(`could not be brought to schema ${next + 1} \\(step ${next + 1}\\): .*nowhere`),
        );
        return true;
      },
    );
    assert.deepEqual(look(path, versions), [...known, next]);
    assert.deepEqual(look(path, "select name from sqlite_schema where name in ('good', 'half')"), ["good"]);
    await openAndClose(path, [...MIGRATIONS, good, later(next + 1, "create table half (n integer)")]);
    assert.deepEqual(look(path, versions), [...known, next, next + 1]);
  });

  it("reject a store that a newer version wrote, and do not change it", async () => {
    const path = freshPath();
    await openAndClose(path, [...MIGRATIONS, later(next, "create table newer (n integer)")]);
    await assert.rejects(openAndClose(path, MIGRATIONS), (error) => {
      assert.ok(error instanceof StorageError);
      assert.match(
        error.message,
        new RegExp(`written by a newer version \\(schema ${next}, this one knows ${known.length}\\)`),
      );
      return true;
    });
    assert.deepEqual(look(path, versions), [...known, next]);
  });

  it("of an interrupted first start begin again", async () => {
    const path = freshPath();
    await assert.rejects(
      openAndClose(path, [
        {
          version: 1,
          name: "cut short",
          statements: (kit) => [...MIGRATIONS[0]!.statements(kit), "insert into nowhere values (1)"],
        },
      ]),
      /cut short/,
    );
    await openAndClose(path, MIGRATIONS);
    assert.deepEqual(look(path, versions), known);
  });
});
