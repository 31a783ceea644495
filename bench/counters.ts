/**
 * Counts the executions of each SQLite statement and the rows that it changed, in the measured process. Prints the
 * counts on request.
 */
import {
  loadSqlite,
  type SqliteDatabase,
  type SqliteLibrary,
  type SqliteStatement,
} from "../plugins/storage-sqlite/load-library.ts";

/** By the SQL text of the statement. */
export type Counts = { [sql: string]: { calls: number; rows: number } };

const counts: Counts = {};

/**
 * Returns the SQLite library, patched to count all statements from now on, including those that other code prepares.
 */
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
  // The class cannot be replaced, but its constructor's prototype can.
  else
    library.DatabaseSync.prototype = Object.create(database, Object.getOwnPropertyDescriptors(own)) as SqliteDatabase;
  return library;
}

/** Each statement has its own counter, because a lookup by text in each call would distort the measurement. */
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

/** Prints the counts to standard output for each line on standard input. */
export function answerCounts(): void {
  process.stdin.on("data", () => process.stdout.write(`${JSON.stringify(counts)}\n`));
  process.stdin.unref?.();
}
