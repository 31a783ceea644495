/** The contract on top of a journal: state in memory, changes in the file before anybody sees them. */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { StorageError, type Storage, type StorageReader, type StorageTransaction } from "assent/storage";
import { memoryStorage, READER_METHODS, WRITER_METHODS } from "assent/testing";
import { openJournal, readJournal, type Call, type Journal } from "./journal.ts";

interface Opened {
  memory: Storage;
  /** Null when it was opened to be read. */
  journal: Journal | null;
}

export function journalStorage(path: string): Storage {
  let opened: Opened | null = null;
  // Opening, writing and closing take turns, in the order in which they were asked for.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(job: () => Promise<T>): Promise<T> => {
    const result = last.then(job);
    last = result.catch(() => undefined);
    return result;
  };

  function now(): Opened {
    if (opened === null) throw new StorageError("unavailable", `the journal ${path} is not open`);
    return opened;
  }

  /** The journal, where it may be written. */
  function writable(): Journal {
    const { journal } = now();
    if (journal === null) throw new StorageError("readonly", `the journal ${path} was opened to be read only`);
    if (journal.broken) throw new StorageError("unavailable", `the journal ${path} could not be written; start again to go on from what is on the disk`);
    return journal;
  }

  async function transact<T>(work: (tx: StorageTransaction) => Promise<T>): Promise<T> {
    const journal = writable();
    return now().memory.write(async (tx) => {
      const calls: Call[] = [];
      const result = await work(recording(tx, calls));
      // Memory commits when this resolves: on the disk first, and then visible.
      if (calls.length > 0) await asStorageError(journal.append(calls));
      return result;
    });
  }

  const read = (name: keyof StorageReader) => async (...args: unknown[]) => (now().memory[name] as (...args: unknown[]) => Promise<unknown>)(...args);
  const reads = Object.fromEntries(READER_METHODS.map((name) => [name, read(name)])) as unknown as StorageReader;

  return {
    ...reads,
    name: "storage-journal",
    exclusive: true,
    open: ({ readOnly = false } = {}) =>
      inTurn(async () => {
        opened ??= await asStorageError(openStore(path, readOnly));
      }),
    close: () =>
      inTurn(async () => {
        const closing = opened;
        opened = null;
        if (closing === null || closing.journal === null) return;
        await closing.journal.close();
        await unlock(path);
      }),
    ping: () => inTurn(() => transact(async (tx) => void (await tx.head()))),
    write: (work) => inTurn(() => transact(work)),
    // The format of the journal has not changed yet.
    schema: async () => ({ applied: 1, known: 1 }),
    leases: async (at) => now().memory.leases(at),
    lease: (...args) =>
      inTurn(async () => {
        writable();
        return now().memory.lease(...args);
      }),
  };
}

/** Writes the calls down while they go through. */
function recording(tx: StorageTransaction, calls: Call[]): StorageTransaction {
  const recorder = { ...tx } as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  for (const name of WRITER_METHODS) {
    const method = tx[name] as (...args: unknown[]) => Promise<unknown>;
    recorder[name] = async (...args) => {
      const result = await method(...args);
      // A compare-and-set that did not hold changed nothing.
      if (result !== false) calls.push([name, ...args]);
      return result;
    };
  }
  return recorder as unknown as StorageTransaction;
}

async function openStore(path: string, readOnly: boolean): Promise<Opened> {
  if (!readOnly) await lock(path);
  try {
    const stored = await readJournal(path);
    if (stored === null && readOnly) throw new StorageError("unavailable", `there is no journal at ${path}`);
    const memory = memoryStorage();
    await memory.open();
    for (const calls of stored?.transactions ?? []) {
      await memory.write(async (tx) => {
        for (const [name, ...args] of calls) await (tx[name as keyof StorageTransaction] as (...args: unknown[]) => Promise<unknown>)(...args);
      });
    }
    return { memory, journal: readOnly ? null : await openJournal(path, stored?.length ?? 0) };
  } catch (error) {
    if (!readOnly) await unlock(path);
    throw error;
  }
}

/** `exclusive` is a promise: a second process must be refused. A lock that a dead process left is taken over. */
async function lock(path: string): Promise<void> {
  for (;;) {
    try {
      await writeFile(`${path}.lock`, String(process.pid), { flag: "wx", mode: 0o600 });
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      else if (code !== "EEXIST") throw error;
      else {
        const holder = Number(await readFile(`${path}.lock`, "utf8"));
        if (isAlive(holder)) throw new StorageError("locked", `the journal ${path} is in use by process ${holder}; stop that one first`);
        await unlock(path);
      }
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function unlock(path: string): Promise<void> {
  await rm(`${path}.lock`, { force: true });
}

async function asStorageError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new StorageError(code === "ENOSPC" || code === "EDQUOT" ? "full" : code === "EACCES" || code === "EROFS" ? "readonly" : "unavailable", message, { cause: error });
  }
}
