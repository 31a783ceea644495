/**
 * Statements that are written with Kysely once and run many times: the builder does not run on the
 * way of a decision. A parameter is a name of the values that are bound to it.
 */
import type { Compilable, Kysely } from "kysely";
import { StorageError, type LedgerHead } from "../../contract/storage.ts";
import { FORMS, pack, unpack, type Form } from "./forms.ts";
import type { Tables } from "./schema.ts";

/** Identifies the head that a transaction wrote. */
export type MovedHead = Pick<LedgerHead, "size" | "root" | "epoch">;

export type SqlValue = string | number | Uint8Array | null;
export type SqlRow = Record<string, SqlValue>;

export interface Statement {
  readonly sql: string;
  /** One name for each placeholder, in order. */
  readonly names: readonly string[];
  /** Those of the names' columns, where one has a form. */
  readonly forms?: readonly (Form | undefined)[];
  /** The table, where the statement is a plain insert of a whole row: `names` are its columns. */
  readonly into?: string;
}

/**
 * What runs statements. Inside a transaction a rejection dooms it: every later call rejects and it
 * is rolled back, even when the caller swallows the error. Integers come back as numbers, text as
 * strings, bytes as Uint8Array.
 */
export interface SqlExecutor {
  all(statement: Statement, values: object): Promise<SqlRow[]>;
  /** Resolves to the number of rows changed. */
  run(statement: Statement, values: object): Promise<number>;
  /**
   * Runs the statement once for each row. Where statements are pipelined nobody waits for the database's answer: a
   * failure dooms the transaction, and the next call or its end tells.
   */
  runMany(statement: Statement, rows: readonly object[]): Promise<void>;
  /**
   * Runs the statement that moves the ledger's head, which must change one row; otherwise `refusal` dooms the
   * transaction. Where statements are pipelined nobody waits for the answer: the commit verifies the head.
   */
  moveHead(values: MovedHead, refusal: Error): Promise<void>;
  /**
   * Like `run` for a row that the caller expects to go in: need not wait for the database's answer, and rows of one
   * table may go together before the next statement of another kind. A failure then dooms the transaction, and the next
   * call or its end tells. A value that cannot be stored rejects at once.
   * `last`: bound to the last name, of which `values` has nothing.
   */
  send(statement: Statement, values: object, last?: SqlValue): Promise<void>;
  /** Dooms the transaction because of something that SQL cannot see, and throws it. */
  fail(error: Error): never;
}

class Param {
  readonly name: string;
  readonly form: Form | undefined;
  constructor(name: string, form: Form | undefined) {
    this.name = name;
    this.form = form;
  }
}

/** Stands where a value goes when a statement is written. `form`: of the column that it is compared with, if it has one. */
export function param<T = never>(name: string, form?: Form): T {
  return new Param(name, form) as T;
}

/** One parameter of the same name for each column, in the columns' forms where they are of this table. */
export function params<T>(columns: readonly string[], table?: string): T {
  const forms = (table === undefined ? undefined : FORMS[table]) ?? {};
  return Object.fromEntries(columns.map((column) => [column, param(column, forms[column])])) as T;
}

export function prepare(query: Compilable): Statement {
  const { sql, parameters } = query.compile();
  const all = parameters.map((parameter) => {
    if (!(parameter instanceof Param))
      throw new TypeError(`write the constant ${String(parameter)} with sql.lit: ${sql}`);
    return parameter;
  });
  const forms = all.map(({ form }) => form);
  return {
    sql,
    names: all.map(({ name }) => name),
    ...(forms.some((form) => form !== undefined) ? { forms } : {}),
  };
}

/** A plain insert of a whole row. */
export function prepareInsert(db: Kysely<Tables>, table: keyof Tables, columns: readonly string[]): Statement {
  return { ...prepare(db.insertInto(table).values(params<never>(columns, table))), into: table };
}

/** A JSON array of rows for a parameter of `SqlDialect.given`. Throws as `bind` does. */
export function bindRows(columns: readonly string[], rows: readonly object[]): string {
  return JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(columns.map((name) => [name, encode((row as Record<string, unknown>)[name], name)])),
    ),
  );
}

/**
 * Throws StorageError for a value that would not come back as it went in. `packed`: columns hold texts in their forms.
 * `last`: bound to the last name, of which `values` has nothing: a copy of a whole row costs as much as binding it.
 */
export function bind({ names, forms }: Statement, values: object, packed: boolean, last?: SqlValue): SqlValue[] {
  const end = last === undefined ? -1 : names.length - 1;
  return names.map((name, i) => {
    const value = i === end ? last : (values as Record<string, unknown>)[name];
    const form = packed ? forms?.[i] : undefined;
    return (form !== undefined && typeof value === "string" ? pack(form, value) : null) ?? encode(value, name);
  });
}

/** Postgres cannot hold U+0000 in text and SQLite libraries cut a string there; U+0001 marks what replaces it. */
// oxlint-disable-next-line no-control-regex
const UNUSUAL = /[\u0000\u0001\p{Cs}]/u;
// oxlint-disable-next-line no-control-regex
const ESCAPED = /\u0001([12])/g;

function encode(value: unknown, name: string): SqlValue {
  switch (typeof value) {
    case "string":
      return UNUSUAL.test(value) ? escapeText(value, name) : value;
    case "number":
      if (Number.isSafeInteger(value)) return value;
      throw new StorageError("invalid", `${name} must be an integer that a double holds exactly, not ${value}`);
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
    throw new StorageError("invalid", `${name} cannot be stored: it holds a lone surrogate, which has no UTF-8 form`);
  }
  return value.replaceAll("\u0001", "\u00012").replaceAll("\u0000", "\u00011");
}

/** A plain object with the row's values as they were before `bind`. */
export function plain<T>(row: SqlRow): T {
  const out: SqlRow = {};
  for (const name in row) {
    const value = row[name] as SqlValue;
    if (typeof value === "string") out[name] = value.includes("\u0001") ? unescapeText(value) : value;
    else out[name] = value instanceof Uint8Array ? (unpack(name, value) ?? value) : value;
  }
  return out as T;
}

function unescapeText(value: string): string {
  return value.replace(ESCAPED, (_, digit) => (digit === "1" ? "\u0000" : "\u0001"));
}
