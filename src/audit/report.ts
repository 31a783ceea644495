/** Helpers that all parts of the store audit use. */
import {
  StorageError,
  type CopiedRow,
  type CopiedTable,
  type StorageCopying,
  type StorageReader,
} from "../contract/storage.ts";
import { findDifferingColumns } from "../domain/differing-columns.ts";

/** A store to audit. Without `copying`, the audit skips the tables that only `copying` can read. */
export type AuditedStore = StorageReader & { readonly copying?: StorageCopying; inspect?(): Promise<string[]> };
export type ReportFault = (message: string) => void;

/** The decoded JSON of an entry. */
export type EntryBody = Record<string, unknown>;

/** Maximum number of attempts for each check. A row that is written during a check can look wrong once. */
const MAX_ATTEMPTS = 3;
/** Number of rows to check in parallel, which hides the latency of a remote database. */
const CONCURRENCY = 8;
const PAGE_SIZE = 200;
const MAX_FAULTS = 20;

/** Returns a function that adds faults to the list, up to `MAX_FAULTS`. */
export function createFaultCollector(into: string[]): ReportFault {
  let count = 0;
  return (message) => {
    if (count++ < MAX_FAULTS) into.push(message);
  };
}

/** Reports data that cannot be read or decoded as a fault. If the store is unavailable, rethrows the error instead. */
export async function reportUnreadableData(
  subject: string,
  reportFault: ReportFault,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof StorageError && error.kind !== "corrupt" && error.kind !== "invalid") throw error;
    reportFault(`${subject} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Runs a check until it finds no faults, at most `MAX_ATTEMPTS` times. Reports the faults of the last attempt. Calls
 * `before` before each attempt.
 */
export async function retryWhileFaulty(
  subject: string,
  reportFault: ReportFault,
  check: (reportFault: ReportFault) => Promise<void>,
  before: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const faults: string[] = [];
    const report: ReportFault = (message) => void faults.push(message);
    await reportUnreadableData(subject, report, async () => {
      await before();
      await check(report);
    });
    if (faults.length === 0 || attempt === MAX_ATTEMPTS) return faults.forEach(reportFault);
  }
}

export async function forEachConcurrently<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  let group: T[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length < CONCURRENCY) continue;
    await Promise.all(group.map(work));
    group = [];
  }
  await Promise.all(group.map(work));
}

const printBigInt = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/**
 * Calls `check` for every row of a table, a page at a time. Passes the current row, or null if the row was deleted
 * after the page was read.
 */
export async function checkEachRow(
  copying: StorageCopying,
  table: CopiedTable,
  reportFault: ReportFault,
  check: (row: CopiedRow, reportFault: ReportFault) => Promise<void>,
): Promise<void> {
  let after: CopiedRow | null = null;
  // A damaged index can return the same rows in a cycle. Brent's algorithm detects a cycle and stores only one
  // position.
  let anchor: string | null = null;
  for (let page = 1; ; page++) {
    const rows: CopiedRow[] = await copying.read(table, after, PAGE_SIZE);
    if (rows.length === 0) return;
    const position = JSON.stringify(rows.at(-1), printBigInt);
    if (position === anchor)
      return reportFault(`an index of ${table} is damaged: it leads back to rows that were read`);
    if ((page & (page - 1)) === 0) anchor = position;
    const start: CopiedRow | null = after;
    const rowsWithPrevious = rows.map((row, i) => ({ row, before: i === 0 ? start : (rows[i - 1] ?? null) }));
    await forEachConcurrently(rowsWithPrevious, async ({ row, before }) => {
      let current: CopiedRow | null = row;
      let first = true;
      await retryWhileFaulty(`a row of ${table}`, reportFault, async (report) => {
        if (!first) current = ((await copying.read(table, before, 1))[0] ?? null) as CopiedRow | null;
        first = false;
        if (current !== null) await check(current, report);
      });
    });
    after = rows.at(-1) ?? null;
  }
}

/** Returns a function that prefixes the reported faults with the subject. */
export function prefixFaults(prefix: string, reportFault: ReportFault): ReportFault {
  return (message) => reportFault(`${prefix}: ${message}`);
}

/** Reports each column of `recorded` that differs in `row`. Skips columns that are undefined in `recorded`. */
export function reportDifferences(recorded: object, row: object, reportFault: ReportFault): void {
  const [expected, stored] = [recorded as EntryBody, row as EntryBody];
  for (const column of findDifferingColumns(recorded, row))
    reportFault(
      `its ${column} is ${clipValue(stored[column])} in the store and ${clipValue(expected[column])} in the ledger`,
    );
}

/**
 * Compares the row of each recorded id with the columns that entries determine. Does not notice other rows.
 * @param noun precedes the id in faults
 */
export function compareRows(
  noun: string,
  recorded: ReadonlyMap<string, object>,
  find: (id: string) => Promise<object | null>,
  reportFault: ReportFault,
): Promise<void> {
  return forEachConcurrently(recorded, async ([id, columns]) => {
    const report = prefixFaults(`${noun} ${id}`, reportFault);
    await reportUnreadableData(`${noun} ${id}`, reportFault, async () => {
      const row = await find(id);
      if (row === null) report("it is in the ledger but not in the store");
      else reportDifferences(columns, row, report);
    });
  });
}

function clipValue(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "absent");
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
