/** Helpers that all parts of the store audit use. */
import type { CopiedRow, CopiedTable, StorageCopying, StorageReader } from "../contract/storage.ts";
import { guarded } from "./ledger.ts";

/** A store to audit. Without `copying`, the audit skips tables that no method of the contract lists. */
export type AuditedStore = StorageReader & { readonly copying?: StorageCopying; inspect?(): Promise<string[]> };
export type Fault = (what: string) => void;

/** The decoded JSON of an entry. */
export type Body = Record<string, unknown>;

/** Attempts for each check, because a row that is written during the check can look wrong once. */
const LOOKS = 3;
/** Rows that are checked in parallel, which hides the latency of a remote database. */
const TOGETHER = 8;
const PAGE = 200;
const MAX_FAULTS = 20;

/** Returns a function that adds faults to the list, up to `MAX_FAULTS`. */
export function faultsOf(into: string[]): Fault {
  let count = 0;
  return (what) => {
    if (count++ < MAX_FAULTS) into.push(what);
  };
}

/**
 * Runs a check up to three times until it finds no faults, and reports the faults of the last attempt. Calls `before` ahead
 * of each attempt.
 */
export async function settled(
  what: string,
  fault: Fault,
  look: (fault: Fault) => Promise<void>,
  before: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  for (let looks = 1; ; looks++) {
    const faults: string[] = [];
    const tell: Fault = (message) => void faults.push(message);
    await guarded(what, tell, async () => {
      await before();
      await look(tell);
    });
    if (faults.length === 0 || looks === LOOKS) return faults.forEach(fault);
  }
}

export async function inGroups<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  let group: T[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length < TOGETHER) continue;
    await Promise.all(group.map(work));
    group = [];
  }
  await Promise.all(group.map(work));
}

const printBigInt = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/**
 * Calls `look` for every row of a table, a page at a time. It gets the row as it is now; null if it was deleted meanwhile.
 */
export async function eachRow(
  copying: StorageCopying,
  table: CopiedTable,
  fault: Fault,
  look: (row: CopiedRow, fault: Fault) => Promise<void>,
): Promise<void> {
  let after: CopiedRow | null = null;
  // A damaged index can return the same rows again. One remembered position is enough to detect that (Brent's algorithm).
  let anchor: string | null = null;
  for (let page = 1; ; page++) {
    const rows: CopiedRow[] = await copying.read(table, after, PAGE);
    if (rows.length === 0) return;
    const position = JSON.stringify(rows.at(-1), printBigInt);
    if (position === anchor) return fault(`an index of ${table} is damaged: it leads back to rows that were read`);
    if ((page & (page - 1)) === 0) anchor = position;
    const start: CopiedRow | null = after;
    const places = rows.map((row, i) => ({ row, before: i === 0 ? start : (rows[i - 1] ?? null) }));
    await inGroups(places, async ({ row, before }) => {
      let current: CopiedRow | null = row;
      let first = true;
      await settled(`a row of ${table}`, fault, async (tell) => {
        if (!first) current = ((await copying.read(table, before, 1))[0] ?? null) as CopiedRow | null;
        first = false;
        if (current !== null) await look(current, tell);
      });
    });
    after = rows.at(-1) ?? null;
  }
}

/** Returns a function that reports faults with the subject in front. */
export function about(what: string, fault: Fault): Fault {
  return (message) => fault(`${what}: ${message}`);
}

/** Reports each column of `recorded` that differs in `row`. Skips columns that are undefined in `recorded`. */
export function compare(recorded: object, row: object, fault: Fault): void {
  for (const [column, value] of Object.entries(recorded)) {
    const stored = (row as Body)[column];
    if (value === undefined || same(value, stored)) continue;
    fault(`its ${column} is ${clipped(stored)} in the store and ${clipped(value)} in the ledger`);
  }
}

function same(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === "object" && a !== null && JSON.stringify(a) === JSON.stringify(b));
}

function clipped(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "absent");
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
