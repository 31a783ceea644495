/**
 * What decisions have in common, once: the rule and what it says, of the policies of then. A row of actions names its kind
 * in place of these columns; a column that it has itself stands before its kind's, as its reason does once a person has
 * spoken. What comes for the first time stays in its row, so that reasons of one action each make no kinds.
 */
import { sql, type Kysely } from "kysely";
import type { ActionRow } from "../../contract/storage.ts";
import type { PackedSql } from "./forms.ts";
import { ACTION_COLUMNS, type Tables } from "./schema.ts";
import { param, plain, prepare, prepareInsert, type SqlExecutor } from "./statement.ts";

export const KIND_COLUMNS = [
  "decision",
  "reason",
  "reason_code",
  "risk_level",
  "policy",
  "rule",
  "policy_version",
  "policy_hash",
] as const satisfies readonly (keyof ActionRow)[];
type KindColumn = (typeof KIND_COLUMNS)[number];

/** How many are known at once, and how many texts that came once. */
const KNOWN = 4096;

const ofKind = (column: KindColumn): `kind_${KindColumn}` => `kind_${column}`;
const isOfKind = (column: string): column is KindColumn => (KIND_COLUMNS as readonly string[]).includes(column);

/** A row says itself what its decision is, or its kind does, and then its reason alone may be its own. */
export const RIGHT_KIND = `case when kind is null then decision is not null else coalesce(${KIND_COLUMNS.filter(
  (column) => !column.startsWith("reason"),
).join(", ")}) is null end`;

interface Kinded {
  readonly packed: PackedSql | null;
}

/** Actions, beside their kinds where they have them. Nothing there is named like a column of actions. */
export function fromActions(db: Kysely<Tables>, { packed }: Kinded) {
  const actions = db.selectFrom("actions");
  return packed === null
    ? actions
    : (actions.leftJoin("action_kinds" as never, "number" as never, "kind" as never) as unknown as typeof actions);
}

/** Columns of `fromActions`. */
export function ofActions<Column extends keyof ActionRow>(columns: readonly Column[], { packed }: Kinded): Column[] {
  if (packed === null) return [...columns];
  return columns.map((column) =>
    isOfKind(column) ? sql`coalesce(${sql.ref(column)}, ${sql.ref(ofKind(column))})`.as(column) : column,
  ) as unknown as Column[];
}

/** What groups rows by these columns. */
export function groupsOf<Column extends keyof ActionRow>(columns: readonly Column[], { packed }: Kinded): Column[] {
  return packed === null ? [...columns] : [...columns, "kind" as Column];
}

/** Columns of a row with a kind. */
export const KINDED_COLUMNS: readonly string[] = [...ACTION_COLUMNS.filter((column) => !isOfKind(column)), "kind"];

/** The row as it is stored with this kind. */
export const withKind = (row: object, kind: number | null): object =>
  kind === null ? { ...row, kind } : { ...row, ...NONE, kind };

export function prepareKinds(db: Kysely<Tables>) {
  const own = ["number", ...KIND_COLUMNS.map(ofKind)];
  const kinds = db
    .selectFrom("action_kinds" as "meta")
    .select(["number", ...KIND_COLUMNS.map((column) => sql.ref(ofKind(column)).as(column))] as never);
  return {
    newestKinds: prepare(kinds.orderBy("number" as never, "desc").limit(param<number>("limit"))),
    kind: prepare(kinds.where("number" as never, "=", param<never>("number"))),
    insertKind: prepareInsert(db, "action_kinds" as "meta", own),
  };
}

export interface Kinds {
  /** Of a row that goes into the store in this transaction; null where it says itself what its decision is. */
  of(db: SqlExecutor, row: ActionRow): Promise<number | null>;
  /** At the end of each transaction. */
  settle(committed: boolean): void;
  /** Before a store is looked at that another may have written. */
  forget(): void;
}

const keyOf = (row: Pick<ActionRow, KindColumn>): string => JSON.stringify(KIND_COLUMNS.map((column) => row[column]));
const kindIn = (row: ActionRow): Pick<ActionRow, KindColumn> =>
  Object.fromEntries(KIND_COLUMNS.map((column) => [column, row[column]])) as unknown as Pick<ActionRow, KindColumn>;
const isSame = (kind: Pick<ActionRow, KindColumn>, row: Pick<ActionRow, KindColumn>): boolean =>
  KIND_COLUMNS.every((column) => kind[column] === row[column]);
const NONE = Object.fromEntries(KIND_COLUMNS.map((column) => [column, null]));

/** Of a store that one process has: nobody else makes kinds. */
export function createKinds({ newestKinds, kind: kindOf, insertKind }: ReturnType<typeof prepareKinds>): Kinds {
  /** Numbers of kinds that are committed, the oldest first; null until they are read. */
  let numbers: Map<string, number> | null = null;
  /** Those of the transaction. */
  const fresh = new Map<string, number>();
  /** Numbers that were seen in the transaction to stand for what they are taken for. */
  const seen = new Set<number>();
  const once = new Set<string>();
  /** By reason. */
  const latest = new Map<string, { row: Pick<ActionRow, KindColumn>; number: number }>();
  let last = 0;

  function forget(): void {
    numbers = null;
    latest.clear();
  }

  async function load(db: SqlExecutor): Promise<Map<string, number>> {
    const rows = (await db.all(newestKinds, { limit: KNOWN })).map((row) =>
      plain<Pick<ActionRow, KindColumn> & { number: number }>(row),
    );
    last = Math.max(last, rows[0]?.number ?? 0);
    return new Map(rows.reverse().map((row) => [keyOf(row), row.number]));
  }

  async function numberOf(db: SqlExecutor, row: ActionRow): Promise<number | null> {
    const number = await knownOf(db, row);
    if (number === null || seen.has(number)) return number;
    // Whoever may write to the file can have altered or taken out a kind: no other action is to say it then.
    const [stored] = await db.all(kindOf, { number });
    if (stored !== undefined && isSame(plain<Pick<ActionRow, KindColumn>>(stored), row)) {
      seen.add(number);
      return number;
    }
    forget();
    return null;
  }

  async function knownOf(db: SqlExecutor, row: ActionRow): Promise<number | null> {
    // A rule says the same each time: nothing is put together then.
    const kind = latest.get(row.reason);
    if (kind !== undefined && isSame(kind.row, row)) return kind.number;
    const number = await lookUp(db, row);
    if (number !== null) {
      if (latest.size >= KNOWN) latest.clear();
      latest.set(row.reason, { row: kindIn(row), number });
    }
    return number;
  }

  async function lookUp(db: SqlExecutor, row: ActionRow): Promise<number | null> {
    const key = keyOf(row);
    numbers ??= await load(db);
    const number = numbers.get(key) ?? fresh.get(key);
    if (number !== undefined) return number;
    if (!once.delete(key)) {
      if (once.size >= KNOWN) once.clear();
      once.add(key);
      return null;
    }
    const next = last + fresh.size + 1;
    const kind = Object.fromEntries(KIND_COLUMNS.map((column) => [ofKind(column), row[column]]));
    fresh.set(key, next);
    seen.add(next);
    await db.run(insertKind, { ...kind, number: next });
    return next;
  }

  return {
    of: numberOf,
    settle(committed) {
      if (committed)
        for (const [key, number] of fresh) {
          last = Math.max(last, number);
          numbers?.set(key, number);
          const [oldest] = numbers?.keys() ?? [];
          if (numbers !== null && numbers.size > KNOWN && oldest !== undefined) numbers.delete(oldest);
        }
      // Whether they are there after a commit that failed nobody knows.
      else if (fresh.size > 0) forget();
      fresh.clear();
      seen.clear();
    },
    forget,
  };
}
