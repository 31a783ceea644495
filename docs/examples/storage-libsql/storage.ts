/** libSQL and Turso under Assent: `file:` for a file, `libsql://` or `http://` for a server that several processes share. */
import { createClient, type Client, type ResultSet, type Transaction } from "@libsql/client";
import { StorageError, type Storage } from "assent/storage";
import { createSqlStorage, sqliteDialect, type SqlEngine, type SqlRow, type SqlValue } from "assent/storage-sql";

export interface LibsqlOptions {
  url: string;
  authToken?: string;
}

export function libsqlStorage(options: LibsqlOptions): Storage {
  return createSqlStorage(libsqlEngine(options), sqliteDialect);
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
    // Other processes can write to the same server. An open write transaction blocks them.
    exclusive: false,

    async open({ readOnly }) {
      client = connect();
      // Only for a file: a server has its own setting.
      if (options.url.startsWith("file:") && !readOnly) await client.execute("pragma journal_mode = wal");
    },

    async close() {
      client?.close();
      client = null;
    },

    query: async (sql, args) => rowsOf(await opened().execute({ sql, args })),

    async begin() {
      // BEGIN IMMEDIATE: reads in the transaction see the newest head, which no other process can move meanwhile.
      let tx: Transaction;
      try {
        tx = await opened().transaction("write");
      } catch (error) {
        // A file's connection that did not get the lock would continue to read its old snapshot.
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

    // libSQL sends no notification of a new head; the service reads it every two seconds.
    watch: async () => async () => undefined,
  };
}

/** Converts the result to plain rows, with bytes as Uint8Arrays. */
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
