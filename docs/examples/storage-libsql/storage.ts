/** libSQL and Turso under Assent: `file:` for a file, `libsql://` or `http://` for a server that several processes share. */
import { createClient, type Client, type ResultSet, type Transaction } from "@libsql/client";
import { StorageError, type Storage } from "assent/storage";
import { createSqlStorage, sqliteDialect, type SqlEngine, type SqlRow, type SqlValue } from "assent/storage-sql";

export interface LibsqlOptions {
  url: string;
  authToken?: string;
}

export function libsqlStorage(options: LibsqlOptions): Storage {
  return createSqlStorage(libsqlEngine(options), { ...sqliteDialect, beginnings: [] });
}

function libsqlEngine(options: LibsqlOptions): SqlEngine {
  const connect = (): Client => createClient({ ...options, intMode: "number" });
  let client: Client | null = null;
  const opened = (): Client => {
    if (client === null) throw new StorageError("unavailable", "the libSQL store is not open");
    return client;
  };

  return {
    name: "storage-libsql",
    // Others may write to a server, and a write transaction shuts them out while it is open.
    exclusive: false,

    async open({ readOnly }) {
      client = connect();
      // A file only: a server has its own.
      if (options.url.startsWith("file:") && !readOnly) await client.execute("pragma journal_mode = wal");
    },

    async close() {
      client?.close();
      client = null;
    },

    query: async (sql, args) => rowsOf(await opened().execute({ sql, args })),

    async begin() {
      // BEGIN IMMEDIATE: reads inside see the newest head, and nobody else moves it meanwhile.
      let tx: Transaction;
      try {
        tx = await opened().transaction("write");
      } catch (error) {
        // On a file, a connection that was refused the lock goes on reading what it saw then.
        opened().close();
        client = connect();
        throw error;
      }
      return {
        async query(sql: string, args: SqlValue[]) {
          const result = await tx.execute({ sql, args });
          return { rows: rowsOf(result), changes: result.rowsAffected };
        },
        commit: () => tx.commit(),
        async rollback() {
          await tx.rollback().catch(() => undefined);
          tx.close();
        },
      };
    },

    toStorageError(error, doing) {
      if (error instanceof StorageError) return error;
      const { code = "", message = String(error) } = error as { code?: string; message?: string };
      const kind = /^SQLITE_(FULL)/.test(code)
        ? "full"
        : /^SQLITE_(READONLY|PERM|CANTOPEN)/.test(code)
          ? "readonly"
          : /^SQLITE_(BUSY|LOCKED)/.test(code)
            ? "locked"
            : /^SQLITE_(CORRUPT|NOTADB)/.test(code)
              ? "corrupt"
              : "unavailable";
      return new StorageError(kind, `cannot ${doing}: ${message}`, { cause: error });
    },

    // Nobody tells that the head was moved; the service looks every two seconds.
    watch: async () => async () => undefined,
  };
}

/** Plain rows, in which bytes are Uint8Arrays. */
function rowsOf({ columns, rows }: ResultSet): SqlRow[] {
  return rows.map((row) =>
    Object.fromEntries(
      columns.map((column, i) => {
        const value = row[i];
        if (value instanceof ArrayBuffer) return [column, new Uint8Array(value)];
        return [column, typeof value === "bigint" ? Number(value) : (value ?? null)];
      }),
    ),
  );
}
