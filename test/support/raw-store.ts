/** Direct access to a store's tables, as an attacker with write access to the database has it. */
import postgres from "postgres";
import { PACKED_COLUMNS, pack, unpack, type PackedForm } from "../../plugins/storage-sql/packed-columns.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";

export type RawValue = string | number | Uint8Array | null;
export type RawRow = Record<string, RawValue>;

export interface RawTable {
  name: string;
  key: string[];
  columns: string[];
  /** Packing of columns that store strings as bytes. `RawStore` reads and writes strings. */
  forms?: Readonly<Record<string, PackedForm>>;
}

export interface RawStore {
  tables: RawTable[];
  rows(table: RawTable): Promise<RawRow[]>;
  /** Sets one column of one row. */
  set(table: RawTable, row: RawRow, column: string, value: RawValue): Promise<void>;
  remove(table: RawTable, row: RawRow): Promise<void>;
  insert(table: RawTable, row: RawRow): Promise<void>;
  close(): Promise<void>;
}

interface Connection {
  /** Returns the placeholder of the n-th parameter, counted from 1. */
  place(n: number): string;
  all(sql: string, values: RawValue[]): Promise<RawRow[]>;
  close(): Promise<void>;
}

const quoted = (name: string): string => `"${name}"`;

function rawStore(tables: RawTable[], db: Connection): RawStore {
  const where = (table: RawTable, from: number): string =>
    table.key.map((column, i) => `${quoted(column)} = ${db.place(from + i)}`).join(" and ");
  const stored = ({ forms }: RawTable, column: string, value: RawValue): RawValue => {
    const form = forms?.[column];
    return form === undefined || typeof value !== "string" ? value : (pack(form, value) ?? value);
  };
  const shown = ({ forms }: RawTable, column: string, value: RawValue): RawValue =>
    forms?.[column] !== undefined && value instanceof Uint8Array ? (unpack(column, value) ?? value) : value;
  const keyOf = (table: RawTable, row: RawRow): RawValue[] =>
    table.key.map((column) => stored(table, column, row[column] as RawValue));
  return {
    tables,
    async rows(table) {
      const rows = await db.all(`select * from ${table.name} order by ${table.key.map(quoted).join(", ")}`, []);
      return rows.map((row) =>
        Object.fromEntries(Object.entries(row).map(([column, value]) => [column, shown(table, column, value)])),
      );
    },
    async set(table, row, column, value) {
      const sql = `update ${table.name} set ${quoted(column)} = ${db.place(1)} where ${where(table, 2)}`;
      await db.all(sql, [stored(table, column, value), ...keyOf(table, row)]);
    },
    async remove(table, row) {
      await db.all(`delete from ${table.name} where ${where(table, 1)}`, keyOf(table, row));
    },
    async insert(table, row) {
      const places = table.columns.map((_, i) => db.place(i + 1)).join(", ");
      const sql = `insert into ${table.name} (${table.columns.map(quoted).join(", ")}) values (${places})`;
      await db.all(
        sql,
        table.columns.map((column) => stored(table, column, row[column] as RawValue)),
      );
    },
    close: () => db.close(),
  };
}

/** Opens a SQLite store. Changes drop the triggers that would reject them, and ignore the checks of packed columns. */
export async function rawSqlite(path: string): Promise<RawStore> {
  const { DatabaseSync } = await loadSqlite();
  const file = new DatabaseSync(path);
  const list = (sql: string, values: RawValue[] = []): RawRow[] => file.prepare(sql).all(...values) as RawRow[];
  file.exec("pragma foreign_keys = off; pragma busy_timeout = 10000");
  const tables = list("select name from sqlite_schema where type = 'table' order by name").map(({ name }): RawTable => {
    const columns = list(`pragma table_info("${String(name)}")`);
    return {
      name: String(name),
      key: columns.filter(({ pk }) => pk !== 0).map((column) => String(column["name"])),
      columns: columns.map((column) => String(column["name"])),
      forms: Object.fromEntries(
        Object.entries(PACKED_COLUMNS[String(name)] ?? {}).filter(([form]) =>
          columns.some((column) => column["name"] === form && String(column["type"]).toLowerCase() === "any"),
        ),
      ),
    };
  });
  return rawStore(tables, {
    place: () => "?",
    async all(sql, values) {
      if (sql.startsWith("select")) return list(sql, values);
      const isLoose = Object.keys(PACKED_COLUMNS).some((table) => sql.startsWith(`update ${table} `));
      file.exec(`pragma ignore_check_constraints = ${isLoose ? "on" : "off"}`);
      const table = /^(?:update|delete from|insert into) (\w+) /.exec(sql)?.[1] ?? "";
      const triggers = list("select name, sql from sqlite_schema where type = 'trigger' and tbl_name = ?", [table]);
      file.exec("begin immediate");
      try {
        for (const { name } of triggers) file.exec(`drop trigger "${String(name)}"`);
        const rows = list(sql, values);
        for (const trigger of triggers) file.exec(String(trigger["sql"]));
        file.exec("commit");
        return rows;
      } catch (error) {
        file.exec("rollback");
        throw error;
      }
    },
    close: () => Promise.resolve(file.close()),
  });
}

/** Opens a Postgres store with a role that can disable triggers and foreign keys. */
export async function rawPostgres(url: string): Promise<RawStore> {
  const client = postgres(url, { max: 1, onnotice: () => {}, types: { bigint: postgres.BigInt } });
  await client`set session_replication_role = replica`;
  const all = async (sql: string, values: RawValue[]): Promise<RawRow[]> =>
    (await client.unsafe(sql, values as never[])).map((row) =>
      Object.fromEntries(
        Object.entries(row as Record<string, unknown>).map(([name, value]): [string, RawValue] => [
          name,
          typeof value === "bigint"
            ? Number(value)
            : value instanceof Uint8Array
              ? new Uint8Array(value)
              : (value as RawValue),
        ]),
      ),
    );
  const columns = await all(
    `select c.table_name, c.column_name, coalesce(k.ordinal_position, 0) as pk
       from information_schema.columns c
       left join information_schema.table_constraints t
         on t.table_schema = c.table_schema and t.table_name = c.table_name and t.constraint_type = 'PRIMARY KEY'
       left join information_schema.key_column_usage k
         on k.constraint_name = t.constraint_name and k.table_schema = t.table_schema and k.column_name = c.column_name
      where c.table_schema = current_schema() order by c.table_name, c.ordinal_position`,
    [],
  );
  const names = [...new Set(columns.map((column) => String(column["table_name"])))];
  const tables = names.map((name): RawTable => {
    const own = columns.filter((column) => column["table_name"] === name);
    return {
      name,
      key: own.filter(({ pk }) => Number(pk) !== 0).map((column) => String(column["column_name"])),
      columns: own.map((column) => String(column["column_name"])),
    };
  });
  return rawStore(tables, { place: (n) => `$${n}`, all, close: () => client.end() });
}
