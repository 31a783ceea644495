/** In a measured process: how often each statement ran on SQLite, and how many rows it changed. Told on request. */
import {
  loadSqlite,
  type SqliteDatabase,
  type SqliteLibrary,
  type SqliteStatement,
} from "../plugins/storage-sqlite/load-library.ts";

/** By the text of the statement. */
export type Counts = { [sql: string]: { calls: number; rows: number } };

const counts: Counts = {};

/** The library. Counts all statements from now on, including those that other code prepares. */
export async function countedSqlite(): Promise<SqliteLibrary> {
  const library = await loadSqlite();
  const database = library.DatabaseSync.prototype;
  const { prepare, exec } = database;
  const of = (sql: string): Counts[string] => (counts[sql] ??= { calls: 0, rows: 0 });
  const own: ThisType<SqliteDatabase> & Pick<SqliteDatabase, "prepare" | "exec"> = {
    prepare(sql) {
      return counted(prepare.call(this, sql), of(sql));
    },
    exec(sql) {
      of(sql).calls += 1;
      exec.call(this, sql);
    },
  };
  if (Object.getOwnPropertyDescriptor(database, "prepare")?.writable === true) Object.assign(database, own);
  // The package's own cannot be replaced; its constructor takes another prototype.
  else
    library.DatabaseSync.prototype = Object.create(database, Object.getOwnPropertyDescriptors(own)) as SqliteDatabase;
  return library;
}

/** Each counts for itself: a look-up by text for each call would itself be seen in what is measured. */
function counted(statement: SqliteStatement, count: Counts[string]): SqliteStatement {
  const { all, run } = statement;
  return Object.defineProperties(statement, {
    all: {
      value: (...values: Parameters<typeof all>) => {
        count.calls += 1;
        return all.apply(statement, values);
      },
    },
    run: {
      value: (...values: Parameters<typeof run>) => {
        count.calls += 1;
        const done = run.apply(statement, values);
        count.rows += Number(done.changes);
        return done;
      },
    },
  });
}

/** Writes what was counted so far to standard output for each line of standard input. */
export function answerCounts(): void {
  process.stdin.on("data", () => process.stdout.write(`${JSON.stringify(counts)}\n`));
  process.stdin.unref?.();
}
