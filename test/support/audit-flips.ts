/**
 * Changes single values and rows of a store directly in the database, and checks that the audit reports each change.
 */
import { deepEqual, ok } from "node:assert/strict";
import type { Vault } from "../../src/contract/core-host.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { UNRECORDED_META_NAMES } from "../../src/audit/audit-rows.ts";
import { UNRECORDED_COLUMNS } from "./unrecorded-columns.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import type { RawRow, RawStore, RawTable, RawValue } from "./raw-store.ts";

/** Default number of rows that are tested in one table. */
const MOST_ROWS = 12;
const whichAreNull = (row: RawRow): unknown => Object.values(row).map((value) => value === null);
const KINDS: Readonly<Record<string, (row: RawRow) => unknown>> = {
  agents: whichAreNull,
  api_keys: whichAreNull,
  approvals: ({ approve, self_approval, break_glass, signed, ...row }) => [
    approve,
    self_approval,
    break_glass,
    signed,
    whichAreNull(row),
  ],
  policies: whichAreNull,
  policy_sets: whichAreNull,
  policy_versions: ({ version, ...row }) => [version === 1, whichAreNull(row)],
  entries: ({ type }) => type,
  actions: ({ status, result, approved_until, erased_at }) => [
    status,
    result === null,
    approved_until === null,
    erased_at === null,
  ],
  idempotency: ({ route }) => route,
  limit_uses: ({ limit_name }) => limit_name,
  past_actions: ({ policy }) => policy,
  deliveries: ({ kind }) => kind,
  documents: ({ plugin }) => plugin,
};

export interface Place {
  table: RawTable;
  row: RawRow;
  column: string;
}

/**
 * Returns every column of a sample of rows: at most `mostRows` of each table, each with a different combination of
 * type, status or null columns.
 */
export async function placesOf(store: RawStore, mostRows = MOST_ROWS): Promise<Place[]> {
  const places: Place[] = [];
  for (const table of store.tables) {
    // These tables are empty in a small ledger. Other tests use ledgers that are large enough.
    if (["tiles", "entry_bundles", "hash_index", "limit_totals"].includes(table.name)) continue;
    const kinds = new Set<string>();
    const kindOf = KINDS[table.name];
    const rows = (await store.rows(table)).filter((row) => {
      const kind = JSON.stringify(kindOf === undefined ? kinds.size : kindOf(row));
      return kinds.size < mostRows && !kinds.has(kind) && kinds.add(kind);
    });
    ok(
      rows.length > 0 || UNRECORDED_COLUMNS.some(({ table: name, column }) => name === table.name && column === "*"),
      table.name,
    );
    for (const row of rows) for (const column of table.columns) places.push({ table, row, column });
  }
  return places;
}

/** Returns true if `UNRECORDED_COLUMNS` lists the column, so that the audit does not compare it. */
export function isUnrecorded({ table, row, column }: Place): boolean {
  return UNRECORDED_COLUMNS.some((known) => {
    if (known.table !== table.name || (known.column !== "*" && known.column !== column)) return false;
    if (table.name === "meta") return UNRECORDED_META_NAMES.some((name) => String(row["name"]).startsWith(name));
    return true;
  });
}

/** Added to numeric keys. It exceeds the highest row number, so no other row has the new key. */
const FAR = 1_000_003;

/** Returns a different value of the same type. With `key`, the value differs from the key of every other row. */
function changed(value: RawValue, key = false): RawValue {
  if (value === null) return null;
  if (typeof value === "number" && key) return value + FAR;
  if (typeof value === "number") return value === 1 ? 0 : value === 0 ? 1 : value + FAR;
  if (typeof value === "string") return value === "" ? "x" : `${value.slice(0, -1)}${value.endsWith("1") ? "2" : "1"}`;
  const other = new Uint8Array(value);
  other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
  return other;
}

/**
 * Stores `value` in one column, calls `look`, and restores the old value. Returns the result of `look`, or null if the
 * database rejects `value`.
 */
export async function withValue<T>(
  store: RawStore,
  { table, row, column }: Place,
  value: RawValue,
  look: () => Promise<T>,
): Promise<T | null> {
  try {
    await store.set(table, row, column, value);
  } catch {
    return null;
  }
  try {
    return await look();
  } finally {
    await store.set(table, { ...row, [column]: value }, column, row[column] as RawValue);
  }
}

export interface Audited {
  raw: RawStore;
  storage: Storage;
  vkey: string;
  vault: Pick<Vault, "mac">;
}

/**
 * Audits a store and returns the faults. The slow inspection of the database's own structures runs only if no other
 * fault was found.
 */
export async function faultsOf({ storage, vkey, vault }: Audited): Promise<string[]> {
  const { inspect: _, ...rows } = storage;
  const { faults } = await auditStore(rows, vkey, vault);
  return faults.length > 0 ? faults : (await auditStore(storage, vkey, vault)).faults;
}

interface Flip {
  place: Place;
  value: RawValue;
}

/** Returns a different value for each place that the audit compares. */
function listFlips(places: readonly Place[]): Flip[] {
  return places
    .filter((place) => !isUnrecorded(place))
    .map((place) => {
      const { table, row, column } = place;
      const was = row[column] as RawValue;
      if (was !== null) return { place, value: changed(was, table.key.includes(column)) };
      const isNumeric = places.some(
        (other) => other.table === table && other.column === column && typeof other.row[column] === "number",
      );
      return { place, value: isNumeric || /_at$|_ms$|_until$|quorum|version|position/.test(column) ? 1 : "x" };
    });
}

/** Returns the text by which a fault identifies a row, for tables whose faults identify rows. */
const NAMES: Readonly<Record<string, (row: RawRow) => string>> = {
  actions: ({ id }) => String(id),
  api_keys: ({ id }) => String(id),
  entries: ({ seq }) => `entry ${Number(seq)} `,
};
/** Number of rows that change at once. The audit reports at most 20 faults of a kind. */
const ROWS_AT_ONCE = 6;

/**
 * Changes each column of several rows at once, which takes fewer audits than single changes. Returns the flips that
 * this does not prove: those of rows that no fault identifies, and those of other tables.
 */
async function findUnnamedFlips(audited: Audited, flips: readonly Flip[]): Promise<Flip[]> {
  const groups = new Map<string, Flip[]>();
  const unnamed: Flip[] = [];
  for (const flip of flips) {
    const { table, column } = flip.place;
    const group = `${table.name}.${column}`;
    if (NAMES[table.name] === undefined) unnamed.push(flip);
    else groups.set(group, [...(groups.get(group) ?? []), flip]);
  }
  const audit = ([first, ...others]: readonly Flip[]): Promise<string[] | null> =>
    first === undefined ? faultsOf(audited) : withValue(audited.raw, first.place, first.value, () => audit(others));
  for (const group of groups.values())
    for (let from = 0; from < group.length; from += ROWS_AT_ONCE) {
      const changedRows = group.slice(from, from + ROWS_AT_ONCE);
      const text = (await audit(changedRows))?.join("\n") ?? "";
      unnamed.push(
        ...changedRows.filter(({ place: { table, row } }) => !text.includes(NAMES[table.name]?.(row) ?? "")),
      );
    }
  return unnamed;
}

/**
 * Changes each column of each sampled row, and checks that the audit reports it or that `UNRECORDED_COLUMNS` lists the
 * column. Returns the number of columns.
 */
export async function flipColumns(audited: Audited, mostRows?: number): Promise<number> {
  const { raw } = audited;
  deepEqual(await faultsOf(audited), []);
  const missed: string[] = [];
  const refused: string[] = [];
  const flips = listFlips(await placesOf(raw, mostRows));
  for (const { place, value } of await findUnnamedFlips(audited, flips)) {
    const { table, row, column } = place;
    const faults = await withValue(raw, place, value, () => faultsOf(audited));
    if (faults === null) refused.push(`${table.name}.${column}`);
    else if (faults.length === 0)
      missed.push(`${table.name}.${column} of ${JSON.stringify(table.key.map((name) => row[name]))}`);
  }
  deepEqual(missed, []);
  // The database's own constraints reject these values, for instance a second ledger head.
  deepEqual([...new Set(refused)].sort(), ["checkpoint.id", "ledger_head.id"]);
  deepEqual(await faultsOf(audited), []);
  return flips.length;
}

/** Tables whose rows expire, and tables that no ledger entry describes. */
const MAY_GO = ["idempotency", "deliveries", "documents", "meta"];

/**
 * Deletes one row of each kind, then duplicates one, and checks that the audit reports both. Returns the number of
 * rows, at most `mostRows` of each table.
 */
export async function removeAndRepeatRows(audited: Audited, mostRows?: number): Promise<number> {
  const { raw } = audited;
  const whole = new Set(UNRECORDED_COLUMNS.filter(({ column }) => column === "*").map(({ table }) => table));
  const seen = new Set<RawRow>();
  for (const { table, row } of await placesOf(raw, mostRows)) {
    if (seen.has(row) || whole.has(table.name)) continue;
    seen.add(row);
    const what = `${table.name} ${JSON.stringify(table.key.map((name) => row[name]))}`;
    if (!MAY_GO.includes(table.name) && table.name !== "checkpoint" && table.name !== "ledger_head") {
      await raw.remove(table, row);
      const faults = await faultsOf(audited);
      await raw.insert(table, row);
      ok(faults.length > 0, `the audit does not report that ${what} is missing`);
    }
    const last = table.key.at(-1) as string;
    const more = {
      ...row,
      [last]: typeof row[last] === "number" ? 900_000 + row[last] : changed(row[last] as RawValue),
    };
    for (const unique of ["id", "hash", "name", "registered_seq"])
      if (unique in more && !table.key.includes(unique)) more[unique] = changed(more[unique] as RawValue);
    try {
      await raw.insert(table, more);
    } catch {
      continue;
    }
    const faults = await faultsOf(audited);
    await raw.remove(table, more);
    ok(faults.length > 0, `the audit does not report the additional row ${what}`);
  }
  deepEqual(await faultsOf(audited), []);
  return seen.size;
}
