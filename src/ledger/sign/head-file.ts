/**
 * A file outside the store with the newest head that this process committed. Checkpoints are signed and synced a moment
 * after the commit. If the process is killed in between, someone who can write to the database could remove the entries
 * that no checkpoint covers. This file is not synced, because a sync is expensive, so it survives the end of the process,
 * but not always a power failure.
 */
import { closeSync, openSync, readFileSync, renameSync, truncateSync, writeSync } from "node:fs";
import type { Logger } from "../../contract/host.ts";
import { equalBytes, fromHex, toHex, utf8 } from "../../domain/hash.ts";
import { LedgerTampered } from "../tampered.ts";

interface CommittedHead {
  size: number;
  root: Uint8Array;
}

export interface HeadFile {
  /** Returns the stored head; null if there is none. Throws LedgerTampered if the file has another format. */
  read(): CommittedHead | null;
  /** Stores the head. A failure is logged once: the file then contains an older head, which is also valid. */
  keep(head: CommittedHead): void;
  /** Renames the file, so that it is no longer used. */
  setAside(size: number): void;
  close(): void;
}

/** The size is padded, so that every head has the same length and replaces the earlier one with a single write. */
const encode = ({ size, root }: CommittedHead): string => `${String(size).padStart(16, "0")} ${toHex(root)}\n`;
const FORMAT = /^(\d{16}) ([0-9a-f]{64})\n$/;

export function openHeadFile(path: string, log: Pick<Logger, "warn">): HeadFile {
  let file: number | null = null;
  let hasWarned = false;
  return {
    read() {
      let text: string;
      try {
        text = readFileSync(path, "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
      // A power failure can leave an empty file.
      if (text.replaceAll("\0", "") === "") return null;
      const [, size, root] = FORMAT.exec(text) ?? [];
      if (size === undefined || root === undefined)
        throw new LedgerTampered([
          `${path} does not contain a head of the ledger; put the right file back, or move it away`,
        ]);
      return { size: Number(size), root: fromHex(root) };
    },
    keep(head) {
      try {
        const bytes = utf8(encode(head));
        file ??= openForWrites(path, bytes.length);
        // Deno ignores the position of a text.
        writeSync(file, bytes, 0, bytes.length, 0);
        hasWarned = false;
      } catch (error) {
        if (!hasWarned) log.warn("the newest head is not stored outside the store", { path, error: String(error) });
        hasWarned = true;
      }
    },
    setAside(size) {
      renameSync(path, `${path}.before-rollback-${size}`);
    },
    close() {
      if (file !== null) closeSync(file);
      file = null;
    },
  };
}

/** Opens the file, and creates it if it is missing. Does not leave it open after an error. */
function openForWrites(path: string, length: number): number {
  closeSync(openSync(path, "a+", 0o600));
  truncateSync(path, length);
  return openSync(path, "r+");
}

/** Returns the fault of a store that lacks this head; null if the store contains it. */
export async function findMissingHead(
  { size, root }: CommittedHead,
  stored: { size: number; rootAt(size: number): Promise<Uint8Array> },
): Promise<string | null> {
  if (size > stored.size)
    return `the store has ${stored.size} entries, and this process committed ${size}: an older copy of the store was restored, or entries were removed after the process was killed`;
  return equalBytes(await stored.rootAt(size), root)
    ? null
    : `the store does not contain the ${size} entries that this process committed: its history differs`;
}
