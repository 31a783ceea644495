/** A file of JSON lines that only grows. A line counts once it is whole and synced. */
import { mkdir, open, readFile, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

/** One write of a transaction: the contract's method and its arguments. */
export type Call = [method: string, ...args: unknown[]];

export interface Journal {
  /** Resolves when the transaction is on the disk. After a rejection it is not there, or `broken` is true. */
  append(calls: readonly Call[]): Promise<void>;
  readonly broken: boolean;
  close(): Promise<void>;
}

const encode = (_key: string, value: unknown): unknown => (value instanceof Uint8Array ? { $bytes: Buffer.from(value).toString("base64") } : value);

function decode(_key: string, value: unknown): unknown {
  const bytes = (value as { $bytes?: unknown } | null)?.$bytes;
  return typeof bytes === "string" ? new Uint8Array(Buffer.from(bytes, "base64")) : value;
}

/** Every whole line. What a crash left of the last one was never acknowledged. */
export async function readJournal(path: string): Promise<{ transactions: Call[][]; length: number } | null> {
  let text: Buffer;
  try {
    text = await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const length = text.lastIndexOf(0x0a) + 1;
  const lines = text.subarray(0, length).toString("utf8").split("\n").slice(0, -1);
  return { transactions: lines.map((line) => JSON.parse(line, decode) as Call[]), length };
}

/** Opens for appending behind the last whole line. */
export async function openJournal(path: string, length: number): Promise<Journal> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file: FileHandle = await open(path, length === 0 ? "a" : "r+", 0o600);
  await file.truncate(length);
  let end = length;
  let broken = false;
  return {
    get broken() {
      return broken;
    },
    async append(calls) {
      const line = Buffer.from(`${JSON.stringify(calls, encode)}\n`);
      try {
        await file.write(line, 0, line.length, end);
        await file.datasync();
        end += line.length;
      } catch (error) {
        // Part of the line may be there, and a failed sync says nothing about what is on the disk.
        await file.truncate(end).then(() => file.datasync()).catch(() => (broken = true));
        throw error;
      }
    },
    close: () => file.close(),
  };
}
