/** What the parts of the audit of a store share. */
import type { CopiedRow, CopiedTable, StorageCopying, StorageReader } from "../contract/storage.ts";
import { guarded } from "./ledger.ts";

/** Without `copying` the tables that no read of the contract lists are not looked at. */
export type AuditedStore = StorageReader & { readonly copying?: StorageCopying; inspect?(): Promise<string[]> };
export type Fault = (what: string) => void;

/** What an entry says, and where it stands. */
export type Body = Record<string, unknown>;

/** What is being written while it is looked at can seem wrong once. */
const LOOKS = 3;
/** Rows that are looked at together: a database that is far away answers them in parallel. */
const TOGETHER = 8;
const PAGE = 200;
const MAX_FAULTS = 20;

/** Keeps the first faults of a part of the store. */
export function faultsOf(into: string[]): Fault {
  let count = 0;
  return (what) => {
    if (count++ < MAX_FAULTS) into.push(what);
  };
}

/** Looks up to three times, each time after `before`, until there are no faults, and reports those of the last look. */
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

/** Every row of a table, a page at a time. `again` is the row as it is now; null when it is gone. */
export async function eachRow(
  copying: StorageCopying,
  table: CopiedTable,
  fault: Fault,
  look: (row: CopiedRow, fault: Fault) => Promise<void>,
): Promise<void> {
  let after: CopiedRow | null = null;
  // A damaged index can lead back to rows that were read. One earlier position suffices to notice it (Brent's algorithm).
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

/** Puts what it is about before each fault. */
export function about(what: string, fault: Fault): Fault {
  return (message) => fault(`${what}: ${message}`);
}

/** Tells each column of `recorded` that `row` has otherwise; undefined is not recorded. */
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
