/** Stores on SQLite and on Postgres, and direct access to their databases. */
import { join } from "node:path";
import postgres from "postgres";
import type { Migration } from "../../plugins/storage-sql/migrations.ts";
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { storeFolder } from "../faults/children/spawn.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "./postgres.ts";
import { rawPostgres, rawSqlite, type RawStore, type RawTable } from "./raw-store.ts";

interface Options {
  unbundledEntries?: number;
  migrations?: readonly Migration[];
}

export interface EngineDatabase {
  storage(options?: Options): Storage;
  /** Direct access with triggers disabled, which can change any row. */
  raw(): Promise<RawStore>;
  /** Runs SQL from a separate connection with triggers enabled, as another program would. */
  sql(text: string): Promise<unknown>;
  all(query: string): Promise<unknown[]>;
}

export interface Engine {
  name: string;
  skip: string | false;
  createDatabase(): Promise<EngineDatabase>;
}

const { DatabaseSync } = await loadSqlite();
let server: PostgresServer | null = null;

/** Stops the Postgres server. Call it after the last test. */
export async function stopEngines(): Promise<void> {
  await server?.stop();
  server = null;
}

export const ENGINES: Engine[] = [
  {
    name: "SQLite",
    skip: false,
    async createDatabase() {
      const path = join(storeFolder(), "assent.db");
      return {
        storage: (options) => sqliteStorage({ path, ...options }),
        raw: () => rawSqlite(path),
        async sql(text) {
          const db = new DatabaseSync(path);
          try {
            db.exec("pragma busy_timeout = 5000");
            db.exec(text);
          } finally {
            db.close();
          }
        },
        async all(query) {
          const db = new DatabaseSync(path);
          try {
            return db.prepare(query).all();
          } finally {
            db.close();
          }
        },
      };
    },
  },
  {
    name: "Postgres",
    skip: withoutPostgres,
    async createDatabase() {
      server ??= await startPostgres();
      const url = await server.database();
      return {
        storage: (options) => postgresStorage({ url, poolSize: 2, acceptUnsafeServer: true, ...options }),
        raw: () => rawPostgres(url),
        async sql(text) {
          const client = postgres(url, { max: 1, onnotice: () => {} });
          try {
            await client.unsafe(`begin; select set_config('assent.transaction', 'x', true); ${text}; commit`);
          } finally {
            await client.end();
          }
        },
        all: (query) => (server as PostgresServer).run(url, (sql) => sql.unsafe(query)),
      };
    },
  },
];

export function tableOf(raw: RawStore, name: string): RawTable {
  const table = raw.tables.find((known) => known.name === name);
  if (table === undefined) throw new Error(`the store has no table ${name}`);
  return table;
}
