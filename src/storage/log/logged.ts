/**
 * Implements the storage contract without an SQL database: all state is in memory, and each transaction is appended to a log
 * before anyone sees its changes. The log only has to provide the methods of `StorageLog`.
 */
import {
  StorageError,
  type LedgerHead,
  type Storage,
  type StorageReader,
  type StorageTransaction,
} from "../../contract/storage.ts";
import { EMPTY_ROOT } from "../../domain/merkle.ts";
import { createReads } from "./reads.ts";
import { TABLE_NAMES, SINGLE_ROW_KEY, type Disk, type Methods, type Pending, type Rows } from "./row-types.ts";
import { copyRow, PendingTable, StoredTable } from "./tables.ts";
import { createWrites } from "./writes.ts";

/** A row after a transaction; null if it was deleted. Rows contain text, numbers, booleans, nulls, lists and Uint8Arrays. */
export interface LoggedChange {
  table: string;
  key: string;
  row: unknown;
}

/** Stores changes. A newer change to the same table and key replaces the older one. */
export interface StorageLog {
  readonly name: string;
  /**
   * Acquires the lock against other processes and returns all changes, oldest first. With `readOnly` it acquires no lock,
   * changes nothing, and rejects if there is no store.
   */
  open(options: { readOnly: boolean }): Promise<Iterable<LoggedChange>>;
  /**
   * Appends one transaction atomically, and resolves when it is durable. After a rejection either nothing was appended, or
   * the log rejects everything until it is opened again. Without changes, checks that the log can be written.
   */
  append(changes: readonly LoggedChange[]): Promise<void>;
  /** Releases the lock. */
  close(): Promise<void>;
}

/** Members that rows written by earlier versions lack. */
const ABSENT: { [Name in keyof Rows]?: Partial<Rows[Name]> } = {
  actions: {
    past: null,
    meta: null,
    questions: null,
    effective: null,
    effective_hash: null,
    asked_at: null,
    waits: null,
    erased_at: null,
  },
};

export function createLoggedStorage(log: StorageLog): Storage {
  const disk = emptyDisk();
  const leases = new Map<string, { holder: string; until: number }>();
  let state: "closed" | "open" | "read only" = "closed";
  let queue: Promise<unknown> = Promise.resolve();

  function enqueue<T>(job: () => Promise<T>): Promise<T> {
    const result = queue.then(job);
    queue = result.catch(() => undefined);
    return result;
  }

  function assertOpen(): void {
    if (state === "closed") throw new StorageError("unavailable", `the store of ${log.name} is not open`);
  }

  function assertWritable(): void {
    assertOpen();
    if (state === "read only")
      throw new StorageError("readonly", `the store of ${log.name} was opened to be read only`);
  }

  async function open(readOnly: boolean): Promise<void> {
    const changes = await log.open({ readOnly });
    try {
      for (const table of Object.values(disk)) table.rows.clear();
      for (const { table, key, row } of changes) {
        const rows = disk[table as keyof Rows] as StoredTable<unknown> | undefined;
        if (rows === undefined)
          throw new StorageError(
            "unavailable",
            `the log of ${log.name} was written by a newer version: table ${table}`,
          );
        if (row === null) rows.delete(key);
        else rows.set(key, { ...ABSENT[table as keyof Rows], ...row });
      }
      if (disk.head.get(SINGLE_ROW_KEY) === undefined) {
        if (readOnly) throw new StorageError("unavailable", "there is no store yet");
        const head: LedgerHead = { size: 0, root: EMPTY_ROOT, edge: [], policy_set: null, epoch: 0 };
        await log.append([{ table: "head", key: SINGLE_ROW_KEY, row: head }]);
        disk.head.set(SINGLE_ROW_KEY, head);
      }
      state = readOnly ? "read only" : "open";
    } catch (error) {
      await log.close();
      throw error;
    }
  }

  async function transact<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    assertWritable();
    const pending = Object.fromEntries(
      TABLE_NAMES.map((name) => [name, new PendingTable(disk[name] as StoredTable<unknown>)]),
    ) as unknown as Pending;
    let over = false;
    let failure: unknown = null;
    // A failed statement dooms the transaction, as in a database, even if the caller ignores the error.
    const run = async (method: () => unknown): Promise<unknown> => {
      if (over)
        throw new StorageError("unavailable", "the transaction is over: await everything inside the work of `write`");
      if (failure !== null) throw failure;
      try {
        return copyRow(method());
      } catch (error) {
        failure = asStorageError(error, error instanceof TypeError ? "invalid" : "unavailable");
        throw failure;
      }
    };
    let result: T;
    try {
      result = await work(
        asynchronous({ ...createReads(pending), ...createWrites(pending) }, run) as unknown as StorageTransaction,
      );
      if (failure !== null) throw failure;
    } finally {
      over = true;
    }
    const changes = TABLE_NAMES.flatMap((table) =>
      [...pending[table].changes()].map(([key, row]) => ({ table, key, row })),
    );
    // Append to the log first, so that no one reads a change that a crash could undo.
    if (changes.length > 0) await orStorageError(log.append(changes));
    for (const name of TABLE_NAMES) pending[name].commit();
    return result;
  }

  const reads = asynchronous(createReads(disk), async (method) => {
    assertOpen();
    return copyRow(method());
  }) as unknown as StorageReader;

  return {
    ...reads,
    name: log.name,
    exclusive: true,
    open: ({ readOnly = false } = {}) =>
      enqueue(async () => {
        if (state === "closed") await orStorageError(open(readOnly));
      }),
    close: () =>
      enqueue(async () => {
        if (state === "closed") return;
        state = "closed";
        await orStorageError(log.close());
      }),
    ping: () =>
      enqueue(async () => {
        assertWritable();
        await orStorageError(log.append([]));
      }),
    schema: async () => {
      assertOpen();
      return { applied: 1, known: 1 };
    },
    leases: async () => {
      assertOpen();
      return [...leases]
        .filter(([, { until }]) => until > performance.now())
        .map(([name, { holder }]) => ({ name, holder }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    lease: (name, holder, ms) =>
      enqueue(async () => {
        assertWritable();
        const held = leases.get(name);
        if (held !== undefined && held.holder !== holder && held.until > performance.now()) return false;
        leases.set(name, { holder, until: performance.now() + ms });
        return true;
      }),
    release: (name, holder) =>
      enqueue(async () => {
        assertWritable();
        if (leases.get(name)?.holder === holder) leases.delete(name);
      }),
    write: (work) => enqueue(() => transact(work)),
  };
}

function emptyDisk(): Disk {
  return Object.fromEntries(TABLE_NAMES.map((name) => [name, new StoredTable()])) as unknown as Disk;
}

async function orStorageError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw asStorageError(error, "unavailable");
  }
}

function asStorageError(error: unknown, kind: StorageError["kind"]): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError(kind, error instanceof Error ? error.message : String(error), { cause: error });
}

function asynchronous(
  methods: Methods,
  run: (method: () => unknown) => Promise<unknown>,
): Record<string, (...args: never[]) => Promise<unknown>> {
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [name, (...args: never[]) => run(() => method(...args) ?? null)]),
  );
}
