/**
 * Restores, at startup, the rows that decisions count: uses of limits, memberships of histories, rejections and pending
 * actions. Recomputes them from the newest entries. While no process that remembers them was running
 * (src/ledger/commit/written-rows.ts), someone who can write to the database may have removed or changed them.
 */
import { setImmediate } from "node:timers/promises";
import {
  type CountedRows,
  mayHaveCountedRows,
  readCountedRow,
  type RecordedRows,
  recomputeRows,
} from "../audit/counted-rows.ts";
import type { Logger } from "../contract/host.ts";
import type { LedgerTransaction } from "../contract/ledger.ts";
import type { ActionRow, Storage, StorageReader } from "../contract/storage.ts";
import type { RecordedAction } from "../domain/action-columns.ts";
import { findDifferingColumns } from "../domain/differing-columns.ts";
import { decodeEntry, type DecisionEntry, type EntryBody } from "../domain/entries.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { JobTransaction } from "../ledger/commit/job-transaction.ts";
import type { OpenLedger } from "../ledger/index.ts";

const PAGE_SIZE = 256;
/** Number of newest entries whose rows are restored before the service makes decisions. */
const ENTRIES_BEFORE_START = 1024;

interface RestoreOptions {
  storage: Storage;
  ledger: OpenLedger;
  /** Returns the policy set with this digest; null if it is not stored. */
  compiled(digest: string | null): Promise<CompiledPolicySet | null>;
  /** Number of newest entries to read. */
  entries: number;
  now(): number;
  log: Pick<Logger, "error">;
  stopping: AbortSignal;
}

/**
 * Restores the rows of the newest actions. Then restores the rows of older actions in the background; `rest` resolves
 * when that is done.
 */
export async function restoreRows(options: RestoreOptions): Promise<{ rest: Promise<void> }> {
  const { ledger, entries } = options;
  const { size } = await ledger.head();
  const last = Math.max(0, size - entries);
  const boundary = Math.max(last, size - ENTRIES_BEFORE_START);
  const later: LaterEntries = new Map();
  await restoreRange(options, size, boundary, later);
  const rest = restoreRange(options, boundary, last, later).catch((error: unknown) =>
    options.log.error("the rows that decisions count could not be compared with the ledger", { error: String(error) }),
  );
  return { rest };
}

/**
 * The entries after the decision of each action: their number, and whether one can change the action's counted rows.
 */
type LaterEntries = Map<string, { count: number; isChange: boolean }>;

const CHANGES: readonly string[] = ["approval", "redecision", "review"];

/** Restores the rows of the decisions in a range of entries, newest first. Adds the other entries to `later`. */
async function restoreRange(options: RestoreOptions, end: number, start: number, later: LaterEntries): Promise<void> {
  const { storage, stopping, compiled } = options;
  for (let before = end; before > start && !stopping.aborted; before -= PAGE_SIZE) {
    const found = new Map<string, number>();
    // Read the entries themselves, because their columns are not part of the ledger.
    for (const { bytes } of (await storage.entries(Math.max(start, before - PAGE_SIZE), before)).reverse()) {
      const entry = decodeEntry<EntryBody & { action_id?: string }>(bytes);
      const { type, action_id: id } = entry;
      if (id === undefined || type.includes(":")) continue;
      const { count, isChange } = later.get(id) ?? { count: 0, isChange: false };
      if (type !== "decision") {
        later.set(id, { count: count + 1, isChange: isChange || CHANGES.includes(type) });
        continue;
      }
      later.delete(id);
      const decision = entry as DecisionEntry;
      const set = await compiled(decision.policy_set);
      const isPending = decision.status === "pending_approval";
      if (isPending || isChange || set === null || mayHaveCountedRows(set, decision)) found.set(id, count + 1);
    }
    const rows = new Map((await storage.actionsById([...found.keys()])).map((row) => [row.id, row]));
    for (const [id, entries] of found) {
      await restoreAction(options, { id, entries }, rows.get(id) ?? null);
      await setImmediate();
    }
    // SQLite responds without a turn of the event loop, so requests would wait for all pages without counted rows.
    await setImmediate();
  }
}

/** An action, with the least number of its entries. */
interface RecordedId {
  id: string;
  entries: number;
}

async function restoreAction(options: RestoreOptions, recordedId: RecordedId, row: ActionRow | null): Promise<void> {
  const { id } = recordedId;
  const { storage, ledger, compiled, log, now } = options;
  if (row === null) {
    log.error("the row of an action is missing in the store; run assent audit", { action: id });
    ledger.written.distrust("counted", id);
    return ledger.written.distrust("rejection", id);
  }
  const { size } = ledger.seenHead();
  const found = await recompute(storage, row, recordedId, compiled);
  const { recorded, fault } = found;
  if (recorded === null || fault !== null) {
    log.error("the row of an action was changed in the store; run assent audit", { action: id, fault });
    if (found.mayCount) ledger.written.distrust("counted", id);
    if (recorded === null || (recorded.rejection_until ?? 0) > now()) ledger.written.distrust("rejection", id);
    return;
  }
  const expected = selectCurrent(found, now());
  if (!isColumnChanged(recorded, row, now()) && (await areStored(storage, expected)))
    return ledger.written.remember(row, expected, size, found.isAsRecorded === true);
  if (!(await ledger.transact((tx) => restoreUnderLock(options, tx, recordedId)))) return;
  log.error("rows that decisions count were missing or changed in the store, and were restored from the ledger", {
    action: id,
  });
  // The row was not compared, so the first history that contains it compares it.
  ledger.written.remember((await storage.action(id)) ?? row, expected, ledger.seenHead().size, false);
}

/** Restores the rows of the action. Returns false if they are stored, because another process wrote them meanwhile. */
async function restoreUnderLock(
  { storage, compiled }: RestoreOptions,
  tx: LedgerTransaction,
  recordedId: RecordedId,
): Promise<boolean> {
  const { id } = recordedId;
  const row = await tx.action(id);
  if (row === null) return false;
  const found = await recompute(tx, row, recordedId, compiled);
  const { recorded, fault } = found;
  if (recorded === null || fault !== null) return false;
  const expected = selectCurrent(found, tx.now);
  const isChanged = isColumnChanged(recorded, row, tx.now);
  if (!isChanged && (await areStored(storage, expected))) return false;
  if (isChanged) {
    const { status, updated_at, expires_at, rejection_until } = recorded;
    await (tx as JobTransaction).changeAction(
      row,
      { status: row.status },
      { status, updated_at, expires_at, rejection_until },
    );
  }
  if (found.uses !== undefined) await tx.releaseLimitUses(id);
  for (const use of expected.uses) await tx.insertLimitUse(use);
  if (found.places !== undefined) await tx.removePastAction(id);
  for (const membership of expected.places) await tx.insertPastAction(membership);
  return true;
}

async function recompute(
  reader: Pick<StorageReader, "entriesOfAction">,
  row: ActionRow,
  { id, entries: least }: RecordedId,
  compiled: RestoreOptions["compiled"],
): Promise<RecordedRows> {
  const rows = await reader.entriesOfAction(id);
  const isComplete = rows.filter(({ type }) => !type.includes(":")).length >= least;
  return recomputeRows(row, isComplete ? rows : [], compiled);
}

/** Returns the rows that decisions can still count. The others may have been deleted. */
function selectCurrent({ uses = [], places = [] }: RecordedRows, now: number): CountedRows {
  const isCurrent = ({ until }: { until: number }): boolean => until > now;
  return { uses: uses.filter(isCurrent), places: places.filter(isCurrent) };
}

/** Returns true if a pending action or an active rejection is not stored as recorded. */
function isColumnChanged(recorded: RecordedAction, row: ActionRow, now: number): boolean {
  const { status, expires_at, rejection_until } = recorded;
  const isPending = status === "pending_approval" && (expires_at ?? 0) > now;
  if (!isPending && (rejection_until ?? 0) <= now) return false;
  return findDifferingColumns({ status, expires_at, rejection_until }, row).length > 0;
}

async function areStored({ copying }: Pick<Storage, "copying">, { uses, places }: CountedRows): Promise<boolean> {
  if (copying === undefined) return true;
  const expected = [
    ...uses.map((row) => ["limit_uses", row] as const),
    ...places.map((row) => ["past_actions", row] as const),
  ];
  for (const [table, row] of expected) {
    const stored = await readCountedRow(copying, table, row);
    if (stored === null || findDifferingColumns(row, stored).length > 0) return false;
  }
  return true;
}
