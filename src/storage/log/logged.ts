/**
 * Implements the storage contract without an SQL database: all state is in memory, and each transaction is appended to
 * a log before its changes become visible. The log has to provide only the methods of `StorageLog`.
 */
import {
  StorageError,
  type LedgerHead,
  type Storage,
  type StorageReader,
  type StorageTransaction,
} from "../../contract/storage.ts";
import { NO_FOLLOWED_ENTRIES } from "../../domain/followed-digest.ts";
import { EMPTY_ROOT } from "../../domain/merkle.ts";
import { createReads } from "./reads.ts";
import {
  TABLE_NAMES,
  SINGLE_ROW_KEY,
  type StoredTables,
  type StorageMethods,
  type TransactionTables,
  type Rows,
} from "./row-types.ts";
import { copyRow, TransactionTable, StoredTable } from "./tables.ts";
import { createWrites } from "./writes.ts";

/**
 * A row after a transaction; null if it was deleted. Rows contain strings, numbers, booleans, nulls, arrays and
 * Uint8Arrays.
 */
export interface LoggedChange {
  table: string;
  key: string;
  row: unknown;
}

/** Stores changes. A newer change to the same table and key replaces an older change. */
export interface StorageLog {
  readonly name: string;
  /**
   * Acquires the lock against other processes and returns all changes, oldest first. With `readOnly`, acquires no lock,
   * changes nothing, and rejects if the store does not exist.
   */
  open(options: { readOnly: boolean }): Promise<Iterable<LoggedChange>>;
  /**
   * Appends one transaction atomically, and resolves when it is durable. If it rejects, either nothing was appended, or
   * the log rejects all calls until it is opened again. With an empty list of changes, checks whether the log can be
   * written.
   */
  append(changes: readonly LoggedChange[]): Promise<void>;
  /** Releases the lock. */
  close(): Promise<void>;
}

/** Defaults for members that are missing in rows of earlier versions. */
const ABSENT_MEMBERS: { [Name in keyof Rows]?: Partial<Rows[Name]> } = {
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

/**
 * Creates a storage that keeps all state in memory and appends every change to `log`.
 * @example
 * const storage = createLoggedStorage(journal("./assent.jsonl"));
 */
export function createLoggedStorage(log: StorageLog): Storage {
  const store = new LoggedStore(log);
  const reads = toAsync(createReads(store.disk), async (method) => {
    store.assertOpen();
    return copyRow(method());
  }) as unknown as StorageReader;
  return {
    ...reads,
    name: log.name,
    exclusive: true,
    open: ({ readOnly = false } = {}) => store.open(readOnly),
    close: () => store.close(),
    ping: () => store.ping(),
    schema: async () => {
      store.assertOpen();
      return { applied: 1, known: 1 };
    },
    leases: async () => store.listLeases(),
    lease: (name, holder, ms) => store.acquireLease(name, holder, ms),
    release: (name, holder) => store.releaseLease(name, holder),
    write: (work) => store.write(work),
  };
}

/** The committed rows, and the log that stores them. Writes run one at a time. Reads do not wait. */
class LoggedStore {
  readonly disk = emptyDisk();
  private readonly log: StorageLog;
  private readonly leases = new Map<string, { holder: string; until: number }>();
  private state: "closed" | "open" | "read only" = "closed";
  private queue: Promise<unknown> = Promise.resolve();

  constructor(log: StorageLog) {
    this.log = log;
  }

  private enqueue<T>(job: () => Promise<T>): Promise<T> {
    const result = this.queue.then(job);
    this.queue = result.catch(() => undefined);
    return result;
  }

  assertOpen(): void {
    if (this.state === "closed") throw new StorageError("unavailable", `the store of ${this.log.name} is not open`);
  }

  private assertWritable(): void {
    this.assertOpen();
    if (this.state === "read only")
      throw new StorageError("readonly", `the store of ${this.log.name} was opened to be read only`);
  }

  open(readOnly: boolean): Promise<void> {
    return this.enqueue(async () => {
      if (this.state === "closed") await orStorageError(this.load(readOnly));
    });
  }

  private async load(readOnly: boolean): Promise<void> {
    const changes = await this.log.open({ readOnly });
    try {
      for (const table of Object.values(this.disk)) table.rows.clear();
      for (const change of changes) this.apply(change);
      if (this.disk.head.get(SINGLE_ROW_KEY) === undefined) {
        if (readOnly) throw new StorageError("unavailable", "there is no store yet");
        const head: LedgerHead = {
          size: 0,
          root: EMPTY_ROOT,
          edge: [],
          policy_set: null,
          epoch: 0,
          followed_digest: NO_FOLLOWED_ENTRIES,
          seal: "",
        };
        await this.log.append([{ table: "head", key: SINGLE_ROW_KEY, row: head }]);
        this.disk.head.set(SINGLE_ROW_KEY, head);
      }
      this.state = readOnly ? "read only" : "open";
    } catch (error) {
      await this.log.close();
      throw error;
    }
  }

  private apply({ table, key, row }: LoggedChange): void {
    const rows = this.disk[table as keyof Rows] as StoredTable<unknown> | undefined;
    if (rows === undefined)
      throw new StorageError(
        "unavailable",
        `the log of ${this.log.name} was written by a newer version: table ${table}`,
      );
    for (const [name, value] of Object.entries(row ?? {}))
      if (!isValue(value))
        throw new StorageError(
          "corrupt",
          `the log of ${this.log.name} returned an object as "${name}" of a row of the table ${table}; return bytes as a Uint8Array`,
        );
    if (row === null) rows.delete(key);
    else rows.set(key, { ...ABSENT_MEMBERS[table as keyof Rows], ...row });
  }

  close(): Promise<void> {
    return this.enqueue(async () => {
      if (this.state === "closed") return;
      this.state = "closed";
      await orStorageError(this.log.close());
    });
  }

  ping(): Promise<void> {
    return this.enqueue(async () => {
      this.assertWritable();
      await orStorageError(this.log.append([]));
    });
  }

  listLeases(): { name: string; holder: string }[] {
    this.assertOpen();
    return [...this.leases]
      .filter(([, { until }]) => until > performance.now())
      .map(([name, { holder }]) => ({ name, holder }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  acquireLease(name: string, holder: string, ms: number): Promise<boolean> {
    return this.enqueue(async () => {
      this.assertWritable();
      const held = this.leases.get(name);
      if (held !== undefined && held.holder !== holder && held.until > performance.now()) return false;
      this.leases.set(name, { holder, until: performance.now() + ms });
      return true;
    });
  }

  releaseLease(name: string, holder: string): Promise<void> {
    return this.enqueue(async () => {
      this.assertWritable();
      if (this.leases.get(name)?.holder === holder) this.leases.delete(name);
    });
  }

  write<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    return this.enqueue(() => this.transact(work));
  }

  private async transact<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    this.assertWritable();
    const pending = Object.fromEntries(
      TABLE_NAMES.map((name) => [name, new TransactionTable(this.disk[name] as StoredTable<unknown>)]),
    ) as unknown as TransactionTables;
    const result = await runStatements(pending, work);
    const changes = TABLE_NAMES.flatMap((table) =>
      [...pending[table].changes()].map(([key, row]) => ({ table, key, row })),
    );
    // Append to the log first, so that no reader gets a change that a crash could undo.
    if (changes.length > 0) await orStorageError(this.log.append(changes));
    for (const name of TABLE_NAMES) pending[name].commit();
    return result;
  }
}

/** Runs the work of a transaction. Rejects if a statement failed, even if the work ignored the error. */
async function runStatements<T>(tables: TransactionTables, work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
  let isOver = false;
  let failure: unknown = null;
  const run = async (method: () => unknown): Promise<unknown> => {
    if (isOver)
      throw new StorageError("unavailable", "the transaction has ended; await everything within the work of `write`");
    if (failure !== null) throw failure;
    try {
      return copyRow(method());
    } catch (error) {
      failure = asStorageError(error, error instanceof TypeError ? "invalid" : "unavailable");
      throw failure;
    }
  };
  const methods = toAsync({ ...createReads(tables), ...createWrites(tables) }, run);
  try {
    const result = await work(methods as unknown as StorageTransaction);
    if (failure !== null) throw failure;
    return result;
  } finally {
    isOver = true;
  }
}

/** Returns false for objects, to which JSON turns bytes. */
function isValue(value: unknown): boolean {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return true;
  return Array.isArray(value) && value.every(isValue);
}

function emptyDisk(): StoredTables {
  return Object.fromEntries(TABLE_NAMES.map((name) => [name, new StoredTable()])) as unknown as StoredTables;
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

function toAsync(
  methods: StorageMethods,
  run: (method: () => unknown) => Promise<unknown>,
): Record<string, (...args: never[]) => Promise<unknown>> {
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [name, (...args: never[]) => run(() => method(...args) ?? null)]),
  );
}
