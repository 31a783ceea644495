/**
 * Injects faults into any storage. Each operation can be made to fail once, either before it has any effect or after
 * its full effect. A real store can fail in both of these ways.
 */
import {
  READER_METHODS,
  StorageError,
  WRITER_METHODS,
  type Storage,
  type StorageErrorKind,
  type StorageTransaction,
} from "../contract/storage.ts";

/**
 * `not-persisted`: the operation has no effect. `persisted`: the operation has its effect, but the caller gets an
 * error.
 */
export type FaultMode = "not-persisted" | "persisted";

export interface FaultOptions {
  /** Number of calls that succeed before the call that fails. Default: 0. */
  skip?: number;
  /** Kind of the error. Default: "unavailable". */
  kind?: StorageErrorKind;
}

export interface Faults {
  /**
   * Returns the names of all operations that can fail: `open`, `close`, `ping`, `lease`, `release`, `leases`; `begin`
   * and `commit` of `write`; reads outside a transaction under their name (`head`); methods of the transaction as
   * `tx.head`.
   */
  operations(): string[];
  /** Makes one later call fail. Throws RangeError for an unknown operation. */
  failNext(operation: string, mode: FaultMode, options?: FaultOptions): void;
  /** Number of injected faults that have occurred. */
  readonly count: number;
  /** Number of planned faults that have not occurred yet. */
  readonly waiting: number;
  /** Returns the number of calls of an operation. */
  calls(operation: string): number;
  /** Removes all planned faults that have not occurred. */
  clear(): void;
}

const OPERATIONS: readonly string[] = [
  "open",
  "close",
  "ping",
  "lease",
  "release",
  "leases",
  "begin",
  "commit",
  ...READER_METHODS,
  ...[...READER_METHODS, ...WRITER_METHODS].map((name) => `tx.${name}`),
];

interface PlannedFault {
  operation: string;
  mode: FaultMode;
  skip: number;
  kind: StorageErrorKind;
}

/** Holds the error of a failed method, so that the transaction fails even if the caller ignores the error. */
interface Doom {
  error?: StorageError;
}

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

/**
 * Wraps a storage with fault injection. Without a planned fault, each call has the result of the wrapped storage.
 * @example
 * const storage = withFaults(sqliteStorage({ path }));
 * storage.faults.failNext("commit", "persisted");
 */
export function withFaults(storage: Storage): Storage & { faults: Faults } {
  const faults = new FaultPlan();
  return {
    name: storage.name,
    exclusive: storage.exclusive,
    ...(faultyMembers(
      faults,
      storage,
      ["open", "close", "ping", "lease", "release", "leases", ...READER_METHODS],
      "",
    ) as unknown as Omit<Storage, "name" | "exclusive" | "schema" | "write">),
    schema: () => storage.schema(),
    write: (work) => faultyWrite(faults, storage, work),
    ...(storage.backup === undefined
      ? {}
      : { backup: (path: string) => (storage.backup as (path: string) => Promise<void>)(path) }),
    ...(storage.compact === undefined ? {} : { compact: storage.compact.bind(storage) }),
    ...(storage.upkeep === undefined
      ? {}
      : { upkeep: (max: number) => (storage.upkeep as NonNullable<Storage["upkeep"]>)(max) }),
    ...(storage.inspect === undefined ? {} : { inspect: storage.inspect.bind(storage) }),
    ...(storage.deleteUncoveredRows === undefined
      ? {}
      : { deleteUncoveredRows: storage.deleteUncoveredRows.bind(storage) }),
    ...(storage.copying === undefined ? {} : { copying: storage.copying }),
    ...(storage.processes === undefined ? {} : { processes: storage.processes }),
    ...(storage.onConnection === undefined ? {} : { onConnection: storage.onConnection.bind(storage) }),
    ...(storage.watch === undefined ? {} : { watch: storage.watch.bind(storage) }),
    faults,
  };
}

/** The planned faults, and the number of calls of each operation. */
class FaultPlan implements Faults {
  count = 0;
  private planned: PlannedFault[] = [];
  private readonly called = new Map<string, number>();

  operations(): string[] {
    return [...OPERATIONS];
  }

  failNext(operation: string, mode: FaultMode, options: FaultOptions = {}): void {
    if (!OPERATIONS.includes(operation))
      throw new RangeError(`unknown operation "${operation}"; faults.operations() lists the operations`);
    this.planned.push({ operation, mode, skip: options.skip ?? 0, kind: options.kind ?? "unavailable" });
  }

  get waiting(): number {
    return this.planned.length;
  }

  calls(operation: string): number {
    return this.called.get(operation) ?? 0;
  }

  clear(): void {
    this.planned = [];
  }

  /** Counts a call. Returns the call's fault; null if it must not fail. */
  strike(operation: string): { mode: FaultMode; error: StorageError } | null {
    this.called.set(operation, this.calls(operation) + 1);
    const due = this.planned.find((fault) => fault.operation === operation && fault.skip-- <= 0);
    if (due === undefined) return null;
    this.planned = this.planned.filter((fault) => fault !== due);
    this.count++;
    return { mode: due.mode, error: new StorageError(due.kind, `injected fault: ${operation} failed, ${due.mode}`) };
  }
}

function faultyMembers(
  faults: FaultPlan,
  target: object,
  names: readonly string[],
  prefix: string,
  doom?: Doom,
): Record<string, AnyMethod> {
  const wrapped: Record<string, AnyMethod> = {};
  for (const name of names) {
    const method = (target as Record<string, AnyMethod>)[name] as AnyMethod;
    wrapped[name] = injectFault(faults, prefix + name, (...args) => method.apply(target, args), doom);
  }
  return wrapped;
}

function injectFault(faults: FaultPlan, operation: string, method: AnyMethod, doom?: Doom): AnyMethod {
  return async (...args) => {
    if (doom?.error !== undefined) throw doom.error;
    const fault = faults.strike(operation);
    if (fault?.mode !== "not-persisted") {
      const result = await method(...args);
      if (fault === null) return result;
    }
    if (doom !== undefined) doom.error = fault.error;
    throw fault.error;
  };
}

async function faultyWrite<T>(
  faults: FaultPlan,
  storage: Storage,
  work: (tx: StorageTransaction) => Promise<T>,
): Promise<T> {
  const begin = faults.strike("begin");
  if (begin?.mode === "not-persisted") throw begin.error;
  let commit: ReturnType<FaultPlan["strike"]> = null;
  const result = await storage.write(async (tx) => {
    // A transaction whose `begin` fails has no effect in either mode.
    if (begin !== null) throw begin.error;
    const doom: Doom = {};
    const members = faultyMembers(faults, tx, [...READER_METHODS, ...WRITER_METHODS], "tx.", doom);
    const done = await work(members as unknown as StorageTransaction);
    if (doom.error !== undefined) throw doom.error;
    commit = faults.strike("commit");
    if (commit?.mode === "not-persisted") throw commit.error;
    return done;
  });
  if (commit !== null) throw (commit as { error: StorageError }).error;
  return result;
}
