/** Selects the entries of a pack, and writes them with the hashes that connect them to the checkpoint. */
import { CommandError } from "../../src/command.ts";
import { createProofReader, decodeUtf8, readFollowedPages, toHex } from "../../src/core.ts";
import type { EntryRow } from "../../src/storage/index.ts";
import type { BoundaryLine, SubtreeLine } from "./pack-format.ts";
import type { PackStore } from "./pack-store.ts";

const PAGE_SIZE = 256;

/** Yields entries in order. Throws CommandError if the store lacks an entry. */
export async function* readEntries(store: PackStore, from: number, to: number): AsyncIterable<EntryRow> {
  for (let seq = from; seq < to; seq += PAGE_SIZE) {
    const rows = await store.entries(seq, Math.min(seq + PAGE_SIZE, to));
    if (rows.length < Math.min(PAGE_SIZE, to - seq))
      throw new CommandError(`entry ${seq + rows.length} is missing; run assent audit`);
    yield* rows;
  }
}

/**
 * Returns the sequence numbers of the followed entries before `first`, which determine what was in force at the start of
 * the window, and the first change of the log's key, which can be later; null if the key never changed.
 */
export async function readContext(
  store: PackStore,
  first: number,
): Promise<{ context: number[]; keyChange: EntryRow | null }> {
  const context: number[] = [];
  let keyChange: EntryRow | null = null;
  for await (const rows of readFollowedPages(store)) {
    for (const row of rows) {
      if (row.seq < first) context.push(row.seq);
      if (row.type === "log_key") keyChange ??= row;
    }
    if (keyChange !== null && (rows.at(-1)?.seq ?? 0) >= first) break;
  }
  return { context, keyChange };
}

/**
 * Yields the lines of entries.jsonl: the bytes of each selected entry and, for the entries in each gap, the roots of
 * the largest perfect subtrees without a selected entry. All lines together hash to the root of the tree. The lines
 * include the entries directly before and after the window, whose times prove that no entry of the window is missing.
 * @param others sequence numbers of entries outside the window, sorted
 */
export async function* renderEntriesFile(
  store: PackStore,
  { first, end, size }: { first: number; end: number; size: number },
  others: readonly number[],
): AsyncIterable<string> {
  const proofs = createProofReader(store);
  let next = 0;
  async function* skipTo(to: number): AsyncIterable<string> {
    while (next < to) {
      let level = 0;
      while (next % 2 ** (level + 1) === 0 && next + 2 ** (level + 1) <= to) level++;
      const line: SubtreeLine = { hash: toHex(await proofs.node(level, next / 2 ** level)), level, start: next };
      yield `${JSON.stringify(line)}\n`;
      next += 2 ** level;
    }
  }
  async function* include(from: number, to: number): AsyncIterable<string> {
    yield* skipTo(from);
    for await (const { bytes } of readEntries(store, from, to)) yield `${decodeUtf8(bytes) ?? ""}\n`;
    next = to;
  }
  async function* includeBoundary(seq: number): AsyncIterable<string> {
    if (seq < 0 || seq >= size || others.includes(seq)) return;
    yield* skipTo(seq);
    for await (const { bytes } of readEntries(store, seq, seq + 1)) {
      const line: BoundaryLine = { boundary: decodeUtf8(bytes) ?? "", start: seq };
      yield `${JSON.stringify(line)}\n`;
    }
    next = seq + 1;
  }
  for (const seq of others) if (seq < first) yield* include(seq, seq + 1);
  yield* includeBoundary(first - 1);
  yield* include(first, end);
  yield* includeBoundary(end);
  for (const seq of others) if (seq >= end) yield* include(seq, seq + 1);
  yield* skipTo(size);
}
