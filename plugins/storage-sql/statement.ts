/**
 * Statements that are compiled once and run many times, because Kysely is too slow for each decision. Each placeholder
 * has the name of the value that is bound to it.
 */
import { type Compilable, type Kysely, type RawBuilder, sql } from "kysely";
import { StorageError, type LedgerHead } from "../../src/storage/index.ts";
import { PACKED_COLUMNS, pack, unpack, type PackedForm } from "./packed-columns.ts";
import type { Tables } from "./table-schema.ts";

/** The members of a written head that identify it. */
export type WrittenHead = Pick<LedgerHead, "size" | "root" | "epoch">;

export type SqlValue = string | number | Uint8Array | null;
export type SqlRow = Record<string, SqlValue>;

export interface Statement {
  readonly sql: string;
  /** Name of the value of each placeholder, in order. */
  readonly names: readonly string[];
  /** Stored form of each value, for values that are compared with packed columns. */
  readonly forms?: readonly (PackedForm | undefined)[] | undefined;
  /** The table, if the statement inserts a whole row. `names` are then the columns of the table. */
  readonly into?: string;
}

/**
 * Runs statements. Within a transaction, a rejection dooms the transaction: every later call rejects, and the
 * transaction is rolled back even if the caller ignores the error. Integers are returned as numbers, text as strings,
 * bytes as Uint8Arrays.
 */
export interface SqlExecutor {
  all(statement: Statement, values: object): Promise<SqlRow[]>;
  /** Runs a statement. Resolves to the number of changed rows. */
  run(statement: Statement, values: object): Promise<number>;
  /**
   * Runs the statement once for each row. If statements are pipelined, does not wait for responses: a failure dooms the
   * transaction, and the next call or the commit rejects.
   */
  runMany(statement: Statement, rows: readonly object[]): Promise<void>;
  /**
   * Runs the statement that writes the ledger's head. It must change one row; otherwise, a StorageError with this
   * message dooms the transaction. If statements are pipelined, does not wait for the response: the commit verifies the
   * head.
   */
  moveHead(values: WrittenHead, refusal: string): Promise<void>;
  /**
   * Like `run`, for an insert that is expected to succeed. Can return before the database responds, and can combine
   * rows of one table into one statement. A failure dooms the transaction, and the next call or the commit rejects.
   * Rejects immediately for a value that cannot be stored. `last`: the value of the last name, which `values` lacks.
   */
  send(statement: Statement, values: object, last?: SqlValue): Promise<void>;
  /** Dooms the transaction because of an error that the database cannot detect, and throws it. */
  fail(error: Error): never;
}

/** Runs reads. */
export type SqlReader = Pick<SqlExecutor, "all">;

class Param {
  readonly name: string;
  readonly form: PackedForm | undefined;
  constructor(name: string, form: PackedForm | undefined) {
    this.name = name;
    this.form = form;
  }
}

/** Returns a named placeholder. `form` is the form of the column that it is compared with, if the column is packed. */
export function param<T = never>(name: string, form?: PackedForm): T {
  return new Param(name, form) as T;
}

/** Returns a column as an expression that no index matches, so that the planner uses another index. */
export const unindexed = (column: string): RawBuilder<never> => sql`coalesce(${sql.ref(column)}, ${sql.ref(column)})`;

/** Returns a placeholder for each column, with the name and the form of the column. */
export function params<T>(columns: readonly string[], table?: string): T {
  const forms = (table === undefined ? undefined : PACKED_COLUMNS[table]) ?? {};
  return Object.fromEntries(columns.map((column) => [column, param(column, forms[column])])) as T;
}

/** A statement that is compiled on first use, because compiling all of them would take a tenth of the startup time. */
class PreparedStatement implements Statement {
  readonly into?: string;
  #build: (() => Compilable) | undefined;
  #sql = "";
  #names: readonly string[] = [];
  #forms: readonly (PackedForm | undefined)[] | undefined;

  constructor(build: () => Compilable, into?: string) {
    this.#build = build;
    if (into !== undefined) this.into = into;
  }

  get sql(): string {
    this.#compile();
    return this.#sql;
  }

  get names(): readonly string[] {
    this.#compile();
    return this.#names;
  }

  get forms(): readonly (PackedForm | undefined)[] | undefined {
    this.#compile();
    return this.#forms;
  }

  #compile(): void {
    if (this.#build === undefined) return;
    const { sql: text, parameters } = this.#build().compile();
    const all = parameters.map((parameter) => {
      if (!(parameter instanceof Param))
        throw new TypeError(`write the constant ${String(parameter)} with sql.lit: ${text}`);
      return parameter;
    });
    const forms = all.map(({ form }) => form);
    if (forms.some((form) => form !== undefined)) this.#forms = forms;
    this.#names = all.map(({ name }) => name);
    this.#sql = text;
    this.#build = undefined;
  }
}

/** Returns a statement that is built when it is first used. */
export function prepare(build: () => Compilable): Statement {
  return new PreparedStatement(build);
}

/** Prepares a statement that inserts a whole row. */
export function prepareInsert(db: Kysely<Tables>, table: keyof Tables, columns: readonly string[]): Statement {
  return new PreparedStatement(() => db.insertInto(table).values(params<never>(columns, table)), table);
}

/** Encodes rows as a JSON array for the parameter of `SqlDialect.given`. Throws StorageError like `bindValues`. */
export function encodeRowsParameter(columns: readonly string[], rows: readonly object[]): string {
  return JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(columns.map((name) => [name, encode((row as Record<string, unknown>)[name], name)])),
    ),
  );
}

/**
 * Returns the values in the order of the names. Throws StorageError for a value that the database could not return
 * unchanged. `packed`: whether columns store strings in their packed forms. `last`: the value of the last name, which
 * `values` lacks. It is separate, because adding it to a copy of the row would take as long as binding the row.
 * @example
 * const { rows } = await client.query(statement.sql, bindValues(statement, values, false));
 */
export function bindValues({ names, forms }: Statement, values: object, packed: boolean, last?: SqlValue): SqlValue[] {
  const end = last === undefined ? -1 : names.length - 1;
  return names.map((name, i) => {
    const value = i === end ? last : (values as Record<string, unknown>)[name];
    const form = packed ? forms?.[i] : undefined;
    return (form !== undefined && typeof value === "string" ? pack(form, value) : null) ?? encode(value, name);
  });
}

/**
 * Characters that need a check or a replacement. Postgres cannot store U+0000 in strings, and SQLite libraries end a
 * string there; U+0001 marks its replacement. Lone surrogates (Cs) have no UTF-8 form and are rejected.
 */
// oxlint-disable-next-line no-control-regex -- the pattern is for control characters
const UNUSUAL = /[\u0000\u0001\p{Cs}]/u;
// oxlint-disable-next-line no-control-regex -- the pattern is for control characters
const ESCAPED = /\u0001([12])/g;

function encode(value: unknown, name: string): SqlValue {
  switch (typeof value) {
    case "string":
      return UNUSUAL.test(value) ? escapeText(value, name) : value;
    case "number":
      if (Number.isSafeInteger(value)) return value;
      throw new StorageError("invalid", `${name} must be a safe integer, not ${value}`);
    case "boolean":
      return value ? 1 : 0;
    case "object":
      if (value === null || value instanceof Uint8Array) return value;
  }
  throw new StorageError(
    "invalid",
    `${name} cannot be stored: it is ${value === undefined ? "missing" : `of type ${typeof value}`}`,
  );
}

function escapeText(value: string, name: string): string {
  if (/\p{Cs}/u.test(value)) {
    throw new StorageError(
      "invalid",
      `${name} cannot be stored: it contains a lone surrogate, which has no UTF-8 form`,
    );
  }
  return value.replaceAll("\u0001", "\u00012").replaceAll("\u0000", "\u00011");
}

/** Converts a row to a plain object. Reverses the conversions of `bindValues`. */
export function toPlainRow<T>(row: SqlRow): T {
  const out: SqlRow = {};
  for (const name in row) {
    const value = row[name] as SqlValue;
    if (typeof value === "string") out[name] = value.includes("\u0001") ? unescapeText(value) : value;
    else out[name] = value instanceof Uint8Array ? (unpack(name, value) ?? value) : value;
  }
  return out as T;
}

/** Runs a read, and returns its rows as plain objects. */
export async function readRows<T>(db: SqlReader, statement: Statement, values: object): Promise<T[]> {
  return (await db.all(statement, values)).map((row) => toPlainRow<T>(row));
}

function unescapeText(value: string): string {
  return value.replace(ESCAPED, (_, digit) => (digit === "1" ? "\u0000" : "\u0001"));
}
