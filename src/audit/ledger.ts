/**
 * Checks that a stored ledger is consistent: entries match their leaf hashes, hashes match the tiles, tiles match the
 * head, the service wrote the head, the head extends the newest signed checkpoint, and the active policy set matches the entries. Reads in pages.
 * Reports faults instead of throwing, so that one run finds up to 20 of them.
 */
import type { Vault } from "../contract/core-host.ts";
import type { RowSeals } from "../contract/row-seals.ts";
import {
  StorageError,
  nullIfCorrupt,
  type EntryRow,
  type LedgerHead,
  type StorageReader,
} from "../contract/storage.ts";
import { MAX_ENTRY_BYTES } from "../domain/entries.ts";
import { equalBytes, toHex } from "../domain/hash.ts";
import { decodeUtf8 } from "../domain/json.ts";
import { openLogCheckpoint, type LogKeys } from "../domain/log-keys.ts";
import { appendToEdge, edgeNodes, EMPTY_ROOT, hashLeaf, rootFromEdge } from "../domain/merkle.ts";
import { rootOfTile, tilesBetween, TILE_WIDTH } from "../domain/tiles.ts";
import { describeForeignHead } from "../ledger/commit/continuity.ts";
import { createProofReader } from "../ledger/reader.ts";
import { createFaultCollector, reportUnreadableData, type ReportFault } from "./report.ts";

/** Entries per read. A page has at most 16 MiB, even if every entry has the maximum size. */
const PAGE_SIZE = 256;

interface AuditOptions {
  /** Sequence number of the first entry whose bytes are hashed again; 0 checks all entries. */
  from: number;
  /**
   * Returns the keys of the log. Called after all entries were passed to `onEntry`. If absent, the newest checkpoint is
   * not verified.
   */
  keys?: () => LogKeys;
  verify: Vault["verify"];
  /** Verifies the seal of the head. If absent, the seal is not verified, because that needs the service's secret. */
  seals?: Pick<RowSeals, "isOwnHead">;
  /** Accepts entries without a signed checkpoint, for an operator who accepts a store that lost its checkpoint. */
  allowUnsigned?: boolean;
  /**
   * Called in order for each entry that the store can return. `body` is its decoded content; null if the bytes do not
   * match the leaf hash or are not a JSON object.
   */
  onEntry?(row: EntryRow, body: Record<string, unknown> | null): void;
  /** Called in order for each entry that the store cannot return. Only its leaf hash is known. */
  onUnread?(seq: number): void;
  /** Called after each page with the number of entries that were read and the total. */
  progress?(done: number, total: number): void;
}

export interface AuditReport {
  size: number;
  entries: number;
  /** Size of the newest checkpoint; null if none was verified. */
  signedSize: number | null;
  /** Empty when the ledger is sound. */
  faults: string[];
}

export async function auditLedger(reader: StorageReader, options: AuditOptions): Promise<AuditReport> {
  const faults: string[] = [];
  const fault = createFaultCollector(faults);
  const head = await reader.head();
  if (!(Number.isSafeInteger(head.size) && head.size >= 0))
    return {
      size: 0,
      entries: 0,
      signedSize: null,
      faults: [`the head has the invalid size ${head.size}`],
    };
  const from = Math.max(0, Math.min(options.from, head.size));
  let counted = 0;
  await reportUnreadableData("the entries", fault, async () => {
    counted = await checkEntries(reader, from, head, options, fault);
    // Another process may have appended entries since the head was read. The entry after the head is then not a fault.
    const behind = (await reader.entries(head.size, head.size + 1)).length > 0;
    if (behind && (await reader.head()).size === head.size)
      fault(`the store has an entry ${head.size} after the end of the ledger`);
  });
  // The missing entries were already reported. Their tiles and nodes cannot exist either, so do not check them.
  if (from + counted < head.size) return { size: head.size, entries: counted, signedSize: null, faults };
  await reportUnreadableData("the tiles", fault, () => checkTiles(reader, from, head.size, fault));
  await reportUnreadableData("the head", fault, () => checkHead(reader, head, fault));
  if (options.seals?.isOwnHead(head) === false) fault(describeForeignHead(head));
  const { keys, verify, allowUnsigned = false } = options;
  let signedSize: number | null = null;
  if (keys !== undefined)
    await reportUnreadableData("the newest checkpoint", fault, async () => {
      signedSize = await checkCheckpoint(reader, { keys: keys(), verify, allowUnsigned }, fault);
    });
  return { size: head.size, entries: counted, signedSize, faults };
}

async function checkEntries(
  reader: StorageReader,
  from: number,
  { size, root: expected, policy_set: active }: LedgerHead,
  { onEntry, onUnread, progress }: Pick<AuditOptions, "onEntry" | "onUnread" | "progress">,
  reportFault: ReportFault,
): Promise<number> {
  let edge: Uint8Array[] = [];
  let next = from;
  // Digest of the active policy set according to the last decision or change of policies. Undefined while it is
  // unknown: at the start of an audit of only the newest entries, and after an unreadable entry.
  let set: unknown = from === 0 ? null : undefined;
  while (next < size) {
    const rows = await pageOf(reader, next, Math.min(size, next + PAGE_SIZE), reportFault);
    if (rows.length === 0) {
      reportFault(`entry ${next} is missing`);
      return next - from;
    }
    for (const row of rows) {
      if (row.seq !== next) {
        reportFault(`entry ${next} is missing`);
        return next - from;
      }
      if ("bytes" in row) {
        const body = checkEntry(row, reportFault);
        if (row.type === "policy_set" || row.type === "decision") set = body?.["policy_set"];
        onEntry?.(row, body);
      } else {
        set = undefined;
        onUnread?.(row.seq);
      }
      // Appending throws for an invalid hash. That fault was reported with the entry.
      if (from === 0) edge = appendToEdge(edge, row.seq, row.leaf_hash);
      next++;
    }
    progress?.(next - from, size - from);
  }
  if (from === 0) {
    const root = size === 0 ? EMPTY_ROOT : rootFromEdge(edge);
    if (!equalBytes(root, expected))
      reportFault(`the entries hash to the root ${toHex(root)}, which differs from the head's root`);
  }
  if (set !== undefined && set !== active) {
    reportFault(
      `the head's policy set ${active ?? "(none)"} differs from the one that the entries activated, ${typeof set === "string" ? set : "(none)"}`,
    );
  }
  return next - from;
}

/**
 * Reads a page of entries. If the store cannot return the page, reads each entry separately. If it cannot return an
 * entry, reads only the leaf hash of the entry.
 */
async function pageOf(
  reader: StorageReader,
  from: number,
  to: number,
  reportFault: ReportFault,
): Promise<(EntryRow | Pick<EntryRow, "seq" | "leaf_hash">)[]> {
  let reason: string;
  try {
    return await reader.entries(from, to);
  } catch (error) {
    if (!(error instanceof StorageError && error.kind === "corrupt")) throw error;
    reason = error.message;
  }
  const rows: (EntryRow | Pick<EntryRow, "seq" | "leaf_hash">)[] = [];
  let unread = 0;
  for (const [i, leaf_hash] of (await reader.leafHashes(from, to)).entries()) {
    const seq = from + i;
    const one = await nullIfCorrupt(reader.entries(seq, seq + 1));
    // If an entry is missing, leaf hashes and entries no longer have the same positions, so stop.
    if (one?.length === 0) break;
    rows.push(one?.[0] ?? { seq, leaf_hash });
    if (one === null) unread++;
  }
  reportFault(`${unread} of the entries ${from} to ${to - 1} cannot be read: ${reason}`);
  return rows;
}

/**
 * Reports the faults of an entry. Returns its decoded content; null if the bytes do not match the leaf hash or are not
 * a JSON object.
 */
function checkEntry(row: EntryRow, reportFault: ReportFault): Record<string, unknown> | null {
  if (!equalBytes(hashLeaf(row.bytes), row.leaf_hash)) {
    reportFault(`entry ${row.seq} was altered: its bytes do not hash to its leaf hash ${toHex(row.leaf_hash)}`);
    return null;
  }
  if (row.bytes.length > MAX_ENTRY_BYTES)
    reportFault(`entry ${row.seq} has ${row.bytes.length} bytes; the maximum is ${MAX_ENTRY_BYTES}`);
  const body = objectOf(row.bytes);
  if (body === null) {
    reportFault(`entry ${row.seq} is not a JSON object`);
    return null;
  }
  if (body["seq"] !== row.seq) reportFault(`entry ${row.seq} contains the sequence number ${String(body["seq"])}`);
  if (body["type"] !== row.type)
    reportFault(`entry ${row.seq} is stored with the type ${row.type} but contains the type ${String(body["type"])}`);
  if ((body["action_id"] ?? null) !== row.action_id)
    reportFault(`entry ${row.seq} is stored with a different action than it contains`);
  if ((body["agent_id"] ?? null) !== row.agent_id)
    reportFault(`entry ${row.seq} is stored with a different agent than it contains`);
  return body;
}

function objectOf(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(decodeUtf8(bytes) ?? "");
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

async function checkTiles(reader: StorageReader, from: number, size: number, reportFault: ReportFault): Promise<void> {
  // Start at the beginning of the tile that contains `from`, because a tile can only be checked as a whole. The hashes
  // of the entries before `from` are compared; the entries themselves are not read.
  const first = Math.floor(from / TILE_WIDTH) * TILE_WIDTH;
  for (const { level, index } of tilesBetween(first, size)) {
    const tile = await reader.tile(level, index);
    if (tile === null || tile.hashes.length !== TILE_WIDTH * 32) {
      reportFault(`tile ${level}/${index} is missing or has a wrong size`);
      continue;
    }
    const at = index * TILE_WIDTH;
    const below =
      level === 0
        ? await reader.leafHashes(at, at + TILE_WIDTH)
        : await reader.tileRoots(level - 1, at, at + TILE_WIDTH);
    const wrong = below.findIndex((hash, i) => !equalBytes(hash, tile.hashes.subarray(i * 32, i * 32 + 32)));
    if (below.length !== TILE_WIDTH || wrong >= 0)
      reportFault(`tile ${level}/${index} does not match the hashes below it`);
    if (!equalBytes(rootOfTile(tile.hashes), tile.root))
      reportFault(`tile ${level}/${index} does not hash to its root`);
  }
}

async function checkHead(reader: StorageReader, head: LedgerHead, reportFault: ReportFault): Promise<void> {
  const proofs = createProofReader(reader);
  const nodes = edgeNodes(head.size);
  if (head.edge.length !== nodes.length) {
    reportFault(
      `the head's right edge has ${head.edge.length} hashes, a tree of size ${head.size} has ${nodes.length}`,
    );
    return;
  }
  try {
    for (const [i, { level, index }] of nodes.entries()) {
      if (!equalBytes(await proofs.node(level, index), head.edge[i] as Uint8Array)) {
        reportFault(`the tree's right edge at level ${level}, index ${index} differs from the head`);
      }
    }
  } catch (error) {
    reportFault(`the tree's right edge cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const root = head.size === 0 ? EMPTY_ROOT : rootFromEdge(head.edge);
  if (!equalBytes(root, head.root)) reportFault("the head's root does not match its right edge");
}

/**
 * Verifies the newest checkpoint. Resolves to its size if the signature is valid and the ledger contains the signed
 * tree; else to null.
 */
async function checkCheckpoint(
  reader: StorageReader,
  { keys, verify, allowUnsigned }: { keys: LogKeys; verify: Vault["verify"]; allowUnsigned: boolean },
  reportFault: ReportFault,
): Promise<number | null> {
  const stored = await reader.checkpoint();
  const head = await reader.head();
  if (stored === null) {
    // An empty log has no stored signature. The service stores its first signature together with the first entries.
    if (head.size > 0 && !allowUnsigned)
      reportFault(`the store has ${head.size} entries but no signed checkpoint: the checkpoint was removed`);
    return null;
  }
  try {
    const checkpoint = openLogCheckpoint(stored.note, keys, verify);
    if (checkpoint.size !== stored.size)
      reportFault(`the stored checkpoint has size ${checkpoint.size} but is stored as size ${stored.size}`);
    else if (checkpoint.size > head.size)
      reportFault(
        `the head (size ${head.size}) is behind the newest signed checkpoint (size ${checkpoint.size}): entries were lost or an older copy of the store was restored`,
      );
    else if (!equalBytes(await createProofReader(reader).rootAt(checkpoint.size), checkpoint.root))
      reportFault(`the ledger does not contain the tree that was signed at size ${checkpoint.size}`);
    else return checkpoint.size;
  } catch (error) {
    reportFault(
      `the newest signed checkpoint cannot be used: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  return null;
}
