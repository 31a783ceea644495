/**
 * Reads and writes the table of processes through a separate session. The other sessions reject a database that lacks
 * entries that this process has seen. This session accepts such a database, because the process must still report to
 * the other processes what it has seen.
 */
import { type ProcessRow, type ProcessTable, StorageError } from "../../src/storage/index.ts";
import { decodeHead, postgresDialect, postgresSqlBuilder, type ReadStatements } from "../storage-sql/api.ts";
import { sql } from "kysely";
import { toStorageError } from "./postgres-errors.ts";
import type { Session } from "./database-session.ts";

const server = postgresDialect.server as NonNullable<typeof postgresDialect.server>;
const NOW = postgresDialect.now;

/** Stores the row of a process. `$1` to `$3`: instance, size, root. */
const REPORT = postgresSqlBuilder
  .insertInto("processes")
  .columns(["instance", "incarnation", "size", "root", "since", "reported_at"])
  .expression(
    postgresSqlBuilder
      .selectFrom("ledger_head")
      .select([
        sql<string>`${sql.raw("$1")}::text`.as("instance"),
        server.incarnation.as("incarnation"),
        sql<number>`${sql.raw("$2")}::bigint`.as("size"),
        sql<Uint8Array>`${sql.raw("$3")}::bytea`.as("root"),
        NOW.as("since"),
        NOW.as("reported_at"),
      ])
      .where("id", "=", sql.lit(1)),
  )
  .onConflict((conflict) =>
    conflict.column("instance").doUpdateSet({
      incarnation: sql`excluded.incarnation`,
      size: sql`excluded.size`,
      root: sql`excluded.root`,
      reported_at: sql`excluded.reported_at`,
      since: sql`case when processes.incarnation = excluded.incarnation then processes.since else excluded.since end`,
    }),
  )
  .compile().sql;

const LIST = postgresSqlBuilder
  .selectFrom("processes")
  .select(["instance", "incarnation", "size", "root"])
  .select([sql<number>`${NOW} - since`.as("since_ms"), sql<number>`${NOW} - reported_at`.as("age_ms")])
  .orderBy("instance")
  .compile().sql;

const REMOVE = "delete from processes where instance = $1";
/** Deletes rows that were last written more than a day ago, by processes that ended without deleting them. */
const DELETE_OLD_ROWS = `delete from processes where reported_at < (extract(epoch from pg_catalog.clock_timestamp()) * 1000.0)::bigint - 86400000`;

interface Processes extends ProcessTable {
  end(): Promise<void>;
}

/** @param open opens a session to a writable server */
export function createProcessTable(reads: ReadStatements, open: () => Promise<Session>): Processes {
  let session: Promise<Session> | null = null;
  let hasForgotten = false;

  async function connected(): Promise<Session> {
    const earlier = session === null ? null : await session.catch(() => null);
    if (earlier !== null && earlier.lost === null) return earlier;
    const opening = open();
    session = opening;
    return opening;
  }

  async function run<T>(doing: string, work: (session: Session) => Promise<T>): Promise<T> {
    try {
      return await work(await connected());
    } catch (error) {
      throw toStorageError(error, doing);
    }
  }

  return {
    report: ({ instance, size, root }) =>
      run("report this process to the others", async (processSession) => {
        await processSession.query(REPORT, [instance, size, root]);
        if (!hasForgotten) await processSession.query(DELETE_OLD_ROWS, []);
        hasForgotten = true;
      }),
    list: () =>
      run("list the processes", async (processSession) => {
        // Send both queries at once, in this order.
        const [heads, rows] = await Promise.all([
          processSession.query(reads.head.sql, []),
          processSession.query(LIST, []),
        ]);
        const [head] = heads.rows;
        if (head === undefined) throw new StorageError("corrupt", "the store has no ledger head");
        return { head: decodeHead(head), processes: rows.rows as unknown as ProcessRow[] };
      }),
    remove: (instance) =>
      run("remove this process's row", async (processSession) => void (await processSession.query(REMOVE, [instance]))),
    async end() {
      const openSession = session === null ? null : await session.catch(() => null);
      session = null;
      await openSession?.end();
    },
  };
}
