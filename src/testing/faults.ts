/**
 * Injects faults into any storage. Each operation can be made to fail once, in one of the two ways in which a real store
 * fails: before it has any effect, or after its full effect.
 */
import {
  READER_METHODS,
  StorageError,
  WRITER_METHODS,
  type Storage,
  type StorageErrorKind,
  type StorageTransaction,
} from "../contract/storage.ts";

/** `not-persisted`: the operation has no effect. `persisted`: it has its effect, but the caller gets an error. */
export type FaultMode = "not-persisted" | "persisted";

export interface FaultOptions {
  /** Number of calls that succeed before the one that fails. Default 0. */
  skip?: number;
  /** Default "unavailable". */
  kind?: StorageErrorKind;
}

export interface Faults {
  /**
   * Returns the names of all operations that can fail: `open`, `close`, `ping`, `lease`, `release`, `leases`; `begin` and
   * `commit` of `write`; reads outside a transaction by name (`head`); methods of the transaction as `tx.head`.
   */
  operations(): string[];
  /** Makes one later call fail. Throws RangeError for an unknown operation. */
  failNext(operation: string, mode: FaultMode, options?: FaultOptions): void;
  /** Number of injected faults that have occurred. */
  readonly count: number;
  /** Number of planned faults that have not occurred yet. */
  readonly waiting: number;
  /** Returns how often an operation was called. */
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

interface Planned {
  operation: string;
  mode: FaultMode;
  skip: number;
  kind: StorageErrorKind;
}

/** The error of a failed method, which makes its transaction fail even if the caller ignores the error. */
interface Doom {
  error?: StorageError;
}

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

/** Wraps a storage with fault injection. Without a planned fault it behaves exactly like the wrapped storage. */
export function withFaults(storage: Storage): Storage & { faults: Faults } {
  const calls = new Map<string, number>();
  let planned: Planned[] = [];
  let count = 0;

  /** Returns the fault for this call, or null. */
  function strike(operation: string): { mode: FaultMode; error: StorageError } | null {
    calls.set(operation, (calls.get(operation) ?? 0) + 1);
    const due = planned.find((fault) => fault.operation === operation && fault.skip-- <= 0);
    if (due === undefined) return null;
    planned = planned.filter((fault) => fault !== due);
    count++;
    return { mode: due.mode, error: new StorageError(due.kind, `injected fault: ${operation} failed, ${due.mode}`) };
  }

  function faulty(operation: string, method: AnyMethod, doom?: Doom): AnyMethod {
    return async (...args) => {
      if (doom?.error !== undefined) throw doom.error;
      const fault = strike(operation);
      if (fault?.mode !== "not-persisted") {
        const result = await method(...args);
        if (fault === null) return result;
      }
      if (doom !== undefined) doom.error = fault.error;
      throw fault.error;
    };
  }

  function faultyMembers(
    target: object,
    names: readonly string[],
    prefix: string,
    doom?: Doom,
  ): Record<string, AnyMethod> {
    const wrapped: Record<string, AnyMethod> = {};
    for (const name of names) {
      const method = (target as Record<string, AnyMethod>)[name] as AnyMethod;
      wrapped[name] = faulty(prefix + name, (...args) => method.apply(target, args), doom);
    }
    return wrapped;
  }

  async function write<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    const begin = strike("begin");
    if (begin?.mode === "not-persisted") throw begin.error;
    let commit: ReturnType<typeof strike> = null;
    const result = await storage.write(async (tx) => {
      // A transaction whose `begin` fails has no effect in either mode.
      if (begin !== null) throw begin.error;
      const doom: Doom = {};
      const members = faultyMembers(tx, [...READER_METHODS, ...WRITER_METHODS], "tx.", doom);
      const done = await work(members as unknown as StorageTransaction);
      if (doom.error !== undefined) throw doom.error;
      commit = strike("commit");
      if (commit?.mode === "not-persisted") throw commit.error;
      return done;
    });
    if (commit !== null) throw (commit as { error: StorageError }).error;
    return result;
  }

  return {
    name: storage.name,
    exclusive: storage.exclusive,
    ...(faultyMembers(
      storage,
      ["open", "close", "ping", "lease", "release", "leases", ...READER_METHODS],
      "",
    ) as unknown as Omit<Storage, "name" | "exclusive" | "schema" | "write">),
    schema: () => storage.schema(),
    write,
    ...(storage.backup === undefined
      ? {}
      : { backup: (path: string) => (storage.backup as (path: string) => Promise<void>)(path) }),
    ...(storage.compact === undefined ? {} : { compact: storage.compact.bind(storage) }),
    ...(storage.upkeep === undefined
      ? {}
      : { upkeep: (max: number) => (storage.upkeep as NonNullable<Storage["upkeep"]>)(max) }),
    ...(storage.inspect === undefined ? {} : { inspect: storage.inspect.bind(storage) }),
    ...(storage.cutBack === undefined ? {} : { cutBack: storage.cutBack.bind(storage) }),
    ...(storage.copying === undefined ? {} : { copying: storage.copying }),
    ...(storage.processes === undefined ? {} : { processes: storage.processes }),
    ...(storage.onConnection === undefined ? {} : { onConnection: storage.onConnection.bind(storage) }),
    ...(storage.watch === undefined ? {} : { watch: storage.watch.bind(storage) }),
    faults: {
      operations: () => [...OPERATIONS],
      failNext(operation, mode, options = {}) {
        if (!OPERATIONS.includes(operation))
          throw new RangeError(`there is no operation "${operation}"; see faults.operations()`);
        planned.push({ operation, mode, skip: options.skip ?? 0, kind: options.kind ?? "unavailable" });
      },
      get count() {
        return count;
      },
      get waiting() {
        return planned.length;
      },
      calls: (operation) => calls.get(operation) ?? 0,
      clear() {
        planned = [];
      },
    },
  };
}
