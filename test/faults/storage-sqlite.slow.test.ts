/** The SQLite store with other programs, other processes and damaged files. */
import assert from "node:assert/strict";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { MIGRATIONS } from "../../plugins/storage-sql/migrations.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite, type SqliteDatabase } from "../../plugins/storage-sqlite/load-library.ts";
import { StorageError, type Storage, type StorageErrorKind } from "../../src/contract/storage.ts";
import {
  actionRow,
  appendEntries,
  headRow,
  policyRow,
  policySetRow,
  tileRow,
  policyVersionRow,
} from "../../src/testing/suite/rows.ts";
import { lacks, start, storeFolder } from "./children/spawn.ts";

const { DatabaseSync } = await loadSqlite();
const folder = storeFolder();
let files = 0;
const freshPath = (): string => join(folder, `${++files}`, "assent.db");

function isKind(kind: StorageErrorKind, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof StorageError, String(error));
    assert.match(error.message, message);
    assert.equal(error.kind, kind, error.message);
    return true;
  };
}

async function withStore(work: (storage: Storage, path: string) => Promise<void>, path = freshPath()): Promise<void> {
  const storage = sqliteStorage({ path, busyTimeoutMs: 20 });
  await storage.open();
  try {
    await work(storage, path);
  } finally {
    await storage.close();
  }
}

async function withOtherProgram(path: string, work: (db: SqliteDatabase) => Promise<void> | void): Promise<void> {
  const db = new DatabaseSync(path);
  try {
    await work(db);
  } finally {
    db.close();
  }
}

describe("ledger tables against other programs", () => {
  async function filled(storage: Storage): Promise<void> {
    await storage.write(async (tx) => {
      await appendEntries(tx, 3);
      await tx.append([], [tileRow(0, 0)], headRow(3));
      await tx.putCheckpoint(3, "three");
      await tx.putPolicySet(policySetRow(1));
      await tx.insertPolicy(policyRow(1));
      await tx.insertPolicyVersion(policyVersionRow("policy-1", 1));
    });
  }
  const columns: Record<string, string> = {
    entries: "seq",
    tiles: "level",
    policy_sets: "created_at",
    policy_versions: "created_at",
  };

  for (const [table, column] of Object.entries(columns)) {
    it(`${table} refuses UPDATE, DELETE and replacement`, () =>
      withStore(async (storage, path) => {
        await filled(storage);
        await withOtherProgram(path, (db) => {
          const before = db.prepare(`select * from ${table}`).all();
          assert.ok(before.length > 0);
          assert.throws(
            () => db.exec(`update ${table} set ${column} = ${column}`),
            new RegExp(`${table} is append-only`),
          );
          assert.throws(() => db.exec(`delete from ${table}`), new RegExp(`${table} is append-only`));
          assert.throws(
            () => db.exec(`update or replace ${table} set ${column} = 7`),
            new RegExp(`${table} is append-only`),
          );
          const replace = (): void => db.exec(`insert or replace into ${table} select * from ${table}`);
          if (table === "policy_sets") replace();
          else assert.throws(replace, new RegExp(`${table} is append-only`));
          assert.deepEqual(db.prepare(`select * from ${table}`).all(), before);
        });
      }));
  }

  it("a policy set cannot be replaced by another document", () =>
    withStore(async (storage, path) => {
      await filled(storage);
      await withOtherProgram(path, (db) =>
        db.exec(
          `insert or replace into policy_sets (digest, document, created_at) select digest, '{}', 0 from policy_sets`,
        ),
      );
      assert.deepEqual(await storage.policySet(policySetRow(1).digest), policySetRow(1));
    }));

  for (const table of ["ledger_head", "checkpoint"]) {
    it(`${table} cannot lose rows, be dropped or be replaced`, () =>
      withStore(async (storage, path) => {
        await filled(storage);
        await withOtherProgram(path, (db) => {
          const before = db.prepare(`select * from ${table}`).all();
          assert.throws(() => db.exec(`update ${table} set size = 2`), /only grows/);
          assert.throws(() => db.exec(`delete from ${table}`), /cannot be deleted/);
          assert.throws(() => db.exec(`insert or replace into ${table} select * from ${table}`), /has one row/);
          assert.throws(() => db.exec(`update ${table} set id = 2`), /constraint/i);
          assert.deepEqual(db.prepare(`select * from ${table}`).all(), before);
        });
      }));
  }
});

describe("one writer", () => {
  it("rejects a second open of the file in this process, and does not affect the first", () =>
    withStore(async (storage, path) => {
      await assert.rejects(sqliteStorage({ path }).open(), isKind("locked", /is already open in this process/));
      await storage.write((tx) => tx.putMeta("a", "1"));
      const holder = start("hold", path);
      assert.equal(await holder.next(), "locked");
    }));

  it("rejects a second open under another name of the same file", () =>
    withStore(async (_, path) => {
      const link = join(folder, `link-${files}`);
      symlinkSync(join(path, ".."), link);
      await assert.rejects(
        sqliteStorage({ path: join(link, "assent.db") }).open(),
        isKind("locked", /in this process/),
      );
      symlinkSync(path, join(folder, `file-${files}.db`));
      await assert.rejects(
        sqliteStorage({ path: join(folder, `file-${files}.db`) }).open(),
        isKind("locked", /in this process/),
      );
    }));

  it("names the process that holds the store, and opens the store once that process was killed", async () => {
    const path = freshPath();
    const holder = start("hold", path);
    assert.equal(await holder.next(), "ok");
    await assert.rejects(
      sqliteStorage({ path }).open(),
      isKind("locked", new RegExp(`in use by process ${holder.process.pid};`)),
    );
    await holder.kill();
    await withStore((storage) => storage.write((tx) => tx.putMeta("a", "1")), path);
  });

  it("opens the store in one of many processes that start at once", async () => {
    const path = freshPath();
    const holders = Array.from({ length: 4 }, () => start("hold", path));
    const said = await Promise.all(holders.map((holder) => holder.next()));
    await Promise.all(holders.map((holder) => holder.kill()));
    assert.deepEqual(said.sort(), ["locked", "locked", "locked", "ok"]);
  });

  it("reports the process that holds the store, even if another process wrote its name last", async () => {
    const path = freshPath();
    mkdirSync(join(path, ".."));
    // Plays the other process: writes to the first given name before the lock is acquired.
    await withOtherProgram(`${path}.lock`, (db) =>
      db.exec(`
      create table holder (id integer primary key check (id = 1), pid integer not null);
      create table late (pid integer);
      insert into late values (999999);
      create trigger late_name after insert on holder when exists (select 1 from late) begin
        update holder set pid = (select pid from late);
        delete from late;
      end`),
    );
    await withStore(async () => {
      assert.match(await start("contend", path).next(), new RegExp(`in use by process ${process.pid};`));
    }, path);
  });

  const container = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"];
  it(
    "does not confuse another container's process with the same id with this one",
    { skip: lacks("no process namespaces here", ...(container as [string]), "true") },
    async () => {
      const path = freshPath();
      const first = start("contend", path, container);
      try {
        assert.equal(await first.next(), "ok 1");
        assert.match(await start("contend", path, container).next(), /assent\.db is in use already;/);
      } finally {
        await first.kill();
      }
    },
  );

  it("releases the store when it is closed, and when opening it failed", async () => {
    const path = freshPath();
    const first = sqliteStorage({ path });
    await first.open();
    await first.close();
    await withStore(async () => undefined, path);
    const broken = sqliteStorage({ path, migrations: [] });
    await assert.rejects(broken.open(), StorageError);
    await withStore(async () => undefined, path);
  });

  it("lets other programs read, and does not read their open transactions", () =>
    withStore(async (storage, path) => {
      await storage.write((tx) => appendEntries(tx, 2));
      await withOtherProgram(path, async (db) => {
        await storage.write(async (tx) => {
          await appendEntries(tx, 1);
          assert.deepEqual({ ...(db.prepare("select size from ledger_head").all()[0] as object) }, { size: 2 });
        });
        assert.deepEqual({ ...(db.prepare("select size from ledger_head").all()[0] as object) }, { size: 3 });
      });
    }));

  it("reports that another program holds the write lock, and continues when the lock is released", () =>
    withStore((storage, path) =>
      withOtherProgram(path, async (db) => {
        db.exec("begin immediate");
        let ran = false;
        await assert.rejects(
          storage.write(async () => {
            ran = true;
          }),
          isKind("locked", /locked/),
        );
        await assert.rejects(storage.ping(), isKind("locked", /locked/));
        assert.equal(ran, false);
        assert.equal((await storage.head()).size, 0);
        db.exec("rollback");
        await storage.write((tx) => appendEntries(tx, 1));
        assert.equal((await storage.head()).size, 1);
      }),
    ));
});

describe("a COMMIT that fails", () => {
  it("releases its lock, even for the next write", async () => {
    // Only COMMIT checks a deferred constraint, and a failing COMMIT leaves the transaction open.
    const statements = (): string[] => [
      "create table loose (n integer references actions (decision_seq) deferrable initially deferred)",
      "create trigger loosen after insert on meta when new.name = 'fail' begin insert into loose values (-1); end",
    ];
    const storage = sqliteStorage({
      path: freshPath(),
      migrations: [...MIGRATIONS, { version: MIGRATIONS.length + 1, name: "loose", statements }],
    });
    await storage.open();
    for (const name of ["a", "b"]) {
      await assert.rejects(
        storage.write(async (tx) => {
          await appendEntries(tx, 1);
          await tx.putMeta("fail", name);
        }),
        isKind("unavailable", /foreign key/i),
      );
      assert.equal(await storage.meta("fail"), null);
      await storage.write((tx) => tx.putMeta("next", name));
      assert.equal(await storage.meta("next"), name);
      assert.equal((await storage.head()).size, 0);
    }
    await storage.close();
  });
});

describe("files", () => {
  it("are private to their user", () =>
    withStore(async (storage, path) => {
      await storage.write((tx) => tx.putMeta("a", "1"));
      const inside = readdirSync(join(path, ".."));
      assert.deepEqual(inside.sort(), ["assent.db", "assent.db-shm", "assent.db-wal", "assent.db.lock"]);
      assert.equal(statSync(join(path, "..")).mode & 0o777, 0o700);
      for (const name of inside) assert.equal(statSync(join(path, "..", name)).mode & 0o777, 0o600, name);
    }));

  it("are created in missing folders, and an existing folder keeps its mode", async () => {
    await withStore(async () => undefined, join(folder, "a", "b", "c", "assent.db"));
    const open = join(folder, "shared");
    mkdirSync(open);
    const { mode } = statSync(open);
    await withStore(async () => undefined, join(open, "assent.db"));
    assert.equal(statSync(open).mode, mode);
  });

  it("contain everything in one file after the store was closed", async () => {
    const path = freshPath();
    await withStore((storage) => storage.write(async (tx) => void (await appendEntries(tx, 5))), path);
    const wal = `${path}-wal`;
    assert.equal(existsSync(wal) ? statSync(wal).size : 0, 0);
    await withOtherProgram(path, (db) => assert.equal(db.prepare("select * from entries").all().length, 5));
  });

  it("can be backed up by another program during writes, and the copy opens", () =>
    withStore(async (storage, path) => {
      await storage.write((tx) => appendEntries(tx, 4));
      const copy = `${path}.backup`;
      await storage.write(async (tx) => {
        await appendEntries(tx, 1);
        await withOtherProgram(path, (db) => db.exec(`vacuum into '${copy}'`));
      });
      await withStore(async (restored) => {
        assert.equal((await restored.head()).size, 4);
        assert.deepEqual(await restored.entries(0, 9), await storage.entries(0, 4));
        await restored.write((tx) => appendEntries(tx, 1));
      }, copy);
    }));

  it("that are not a database are rejected as corrupt", async () => {
    const path = freshPath();
    mkdirSync(join(path, ".."));
    writeFileSync(path, "not a database, ".repeat(500));
    await assert.rejects(sqliteStorage({ path }).open(), isKind("corrupt", /not a database/));
  });

  it("of another program are rejected and not changed", async () => {
    const path = freshPath();
    mkdirSync(join(path, ".."));
    await withOtherProgram(path, (db) => db.exec("create table songs (title text); insert into songs values ('x')"));
    await assert.rejects(sqliteStorage({ path }).open(), isKind("corrupt", /another program/));
    await withOtherProgram(path, (db) =>
      assert.deepEqual(
        db
          .prepare("select name from sqlite_schema")
          .all()
          .map((row) => ({ ...(row as object) })),
        [{ name: "songs" }],
      ),
    );
  });

  it("with overwritten pages are rejected when they are opened or read", async () => {
    const path = freshPath();
    await withStore(
      (storage) =>
        storage.write(async (tx) => {
          for (let n = 0; n < 50; n++) await tx.insertAction(actionRow(n, { request: "x".repeat(4000) }));
        }),
      path,
    );
    const { size } = statSync(path);
    const file = openSync(path, "r+");
    writeSync(file, new Uint8Array(size - 8192).fill(0x5a), 0, size - 8192, 8192);
    closeSync(file);
    await assert.rejects(
      async () => {
        await withStore(
          async (storage) => void (await storage.actions({ visibility: { all: true }, limit: 99 })),
          path,
        );
      },
      (error) => error instanceof StorageError && error.kind === "corrupt",
    );
  });

  it("need a path that names a file", async () => {
    await assert.rejects(
      sqliteStorage({ path: ":memory:" }).open(),
      isKind("unavailable", /":memory:" is not a file path/),
    );
  });

  it("cannot be created if a file has the name of the folder", async () => {
    writeFileSync(join(folder, "plain"), "");
    await assert.rejects(
      sqliteStorage({ path: join(folder, "plain", "assent.db") }).open(),
      isKind("unavailable", /cannot create the folder/),
    );
  });
});
