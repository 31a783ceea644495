/** An append-only file of JSON lines, one for each transaction. A transaction is committed once its line is complete and synced. */
import { mkdir, open, readFile, rm, writeFile, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { createLoggedStorage, StorageError, type LoggedChange, type Storage, type StorageLog } from "assent/storage";

export function journalStorage(path: string): Storage {
  return createLoggedStorage(journal(path));
}

function journal(path: string): StorageLog {
  /** Null while the store is closed or open read-only. */
  let file: FileHandle | null = null;
  let end = 0;
  let broken = false;

  return {
    name: "storage-journal",

    async open({ readOnly }) {
      if (!readOnly) await lock(path);
      try {
        const stored = await read(path);
        if (stored === null && readOnly) throw new StorageError("unavailable", `there is no journal at ${path}`);
        if (!readOnly) {
          file = await open(path, stored === null ? "a" : "r+", 0o600);
          end = stored?.length ?? 0;
          broken = false;
          // A last line that a crash cut off was never acknowledged.
          await file.truncate(end);
        }
        return stored?.changes ?? [];
      } catch (error) {
        if (!readOnly) await unlock(path);
        throw error;
      }
    },

    async append(changes) {
      if (file === null) throw new StorageError("unavailable", `the journal ${path} is not open`);
      if (broken)
        throw new StorageError(
          "unavailable",
          `the journal ${path} could not be written; start again to go on from what is on the disk`,
        );
      if (changes.length === 0) return;
      const line = Buffer.from(`${JSON.stringify(changes, encode)}\n`);
      const opened = file;
      try {
        for (let done = 0; done < line.length;)
          done += (await opened.write(line, done, line.length - done, end + done)).bytesWritten;
        await opened.datasync();
        end += line.length;
      } catch (error) {
        // The file may contain part of the line, and after a failed sync the content of the disk is unknown.
        await opened
          .truncate(end)
          .then(() => opened.datasync())
          .catch(() => (broken = true));
        throw kindOf(error);
      }
    },

    async close() {
      if (file === null) return;
      await file.close();
      file = null;
      await unlock(path);
    },
  };
}

const encode = (_key: string, value: unknown): unknown =>
  value instanceof Uint8Array ? { $bytes: Buffer.from(value).toString("base64") } : value;

function decode(_key: string, value: unknown): unknown {
  const bytes = (value as { $bytes?: unknown } | null)?.$bytes;
  return typeof bytes === "string" ? new Uint8Array(Buffer.from(bytes, "base64")) : value;
}

/** Returns the changes of every complete line, and the end of the last one. Null if there is no file. */
async function read(path: string): Promise<{ changes: LoggedChange[]; length: number } | null> {
  let text: Buffer;
  try {
    text = await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const length = text.lastIndexOf(0x0a) + 1;
  const lines = text.subarray(0, length).toString("utf8").split("\n").slice(0, -1);
  return { changes: lines.flatMap((line) => JSON.parse(line, decode) as LoggedChange[]), length };
}

/** Locks the file against other processes. Takes over the lock of a process that has died. */
async function lock(path: string): Promise<void> {
  for (;;) {
    try {
      await writeFile(`${path}.lock`, String(process.pid), { flag: "wx", mode: 0o600 });
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      else if (code !== "EEXIST") throw kindOf(error);
      else {
        const holder = Number(await readFile(`${path}.lock`, "utf8"));
        if (isAlive(holder))
          throw new StorageError("locked", `the journal ${path} is in use by process ${holder}; stop that one first`);
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

function kindOf(error: unknown): StorageError {
  const { code, message } = error as NodeJS.ErrnoException;
  const kind =
    code === "ENOSPC" || code === "EDQUOT"
      ? "full"
      : code === "EACCES" || code === "EROFS"
        ? "readonly"
        : "unavailable";
  return new StorageError(kind, message, { cause: error });
}
