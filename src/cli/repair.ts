/**
 * `assent audit --repair` deletes rows after the head. In an earlier version, a lost connection could leave these rows
 * in the store.
 */
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/index.ts";
import type { RemovedRow, Storage } from "../contract/storage.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import { CommandError, type Output } from "./command.ts";
import { assertCurrentSchema, withStore } from "./with-store.ts";

/** Name of the row in `meta` that contains the repairs: a JSON array, oldest first. */
const REPAIRS = "repairs";

interface Repair {
  at: string;
  /** Number of entries that remain after the repair. */
  size: number;
  entries: number;
  rows: number;
  copy: string;
  /** SHA-256 of the copy, hex. */
  sha256: string;
}

/** Deletes the rows after the head. Resolves to null if there are none. Rejects with CommandError. */
export async function repairStore(config: Config, file: string | undefined, io: Output): Promise<Repair | null> {
  return withStore(config, {}, async (storage) => {
    await assertCurrentSchema(storage);
    const { size } = await storage.head();
    if (storage.deleteUncoveredRows === undefined) {
      if ((await storage.entries(size, size + 1)).length === 0) return null;
      throw new CommandError(`${storage.name} cannot be repaired: restore a backup`);
    }
    const at = new Date().toISOString();
    const copy = file ?? join(config.data, `cut-${size}-${at.replaceAll(/[:.]/g, "-")}.jsonl`);
    let repair: Repair | null = null;
    await storage.deleteUncoveredRows(async (rows, tx) => {
      const text = rows.map((row) => `${lineOf(row)}\n`).join("");
      writeCopy(copy, text);
      const entries = rows.filter(({ table }) => table === "entries").length;
      repair = { at, size, entries, rows: rows.length, copy, sha256: sha256Hex(utf8(text)) };
      await tx.putMeta(REPAIRS, JSON.stringify([...(await readRepairs(tx)), repair]));
    });
    if (repair === null) return null;
    io.out(formatRepair(repair));
    return repair;
  });
}

export function formatRepair({ at, size, entries, rows, copy, sha256 }: Repair): string {
  return `removed the entries from ${size} on at ${at}: ${entries} entries that no head ever covered, ${rows} rows in total; the copy is ${copy}, SHA-256 ${sha256}`;
}

export async function readRepairs(storage: Pick<Storage, "meta">): Promise<Repair[]> {
  return JSON.parse((await storage.meta(REPAIRS)) ?? "[]") as Repair[];
}

function lineOf({ table, row }: RemovedRow): string {
  const bytes = (_key: string, value: unknown): unknown =>
    value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value;
  return JSON.stringify({ table, row }, bytes);
}

/** Writes a copy of the rows and syncs it, before they are deleted. Never overwrites an existing file. */
function writeCopy(path: string, text: string): void {
  try {
    const fd = openSync(path, "wx", 0o600);
    try {
      const content = Buffer.from(text);
      for (let done = 0; done < content.length;) done += writeSync(fd, content, done);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw new CommandError(
      `the copy ${path} cannot be written, so nothing was deleted: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
