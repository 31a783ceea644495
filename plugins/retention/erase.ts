/**
 * Erases requests and results from the store, and records who erased them and why. The ledger keeps its commitments.
 */
import { setImmediate } from "node:timers/promises";
import {
  actionEntryFields,
  canSee,
  commitRejectionDigests,
  confirmCredential,
  type CoreHost,
  type ErasablePart,
  type ErasureEntry,
  type LedgerTransaction,
  toActor,
  withoutDelegations,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import type { ContentFilter } from "./content-filter.ts";
import {
  contentByteLength,
  digestRejection,
  rereadAction,
  verifyAgainstLedger,
  verifyStoredContent,
  visibleAction,
} from "../actions/api.ts";
import { actionHeldError, createHoldFinder, ERRORS, legalHoldState } from "./holds.ts";

/** Number of rows in memory at a time. Each can be as large as the largest request. */
const PAGE_SIZE = 50;
/** Limits of one HTTP request. The response contains the cursor for the next request. */
const MAX_SCANNED = 5000;
const MAX_MS = 5000;
/**
 * Maximum number of bytes that one transaction searches for each person under a legal hold, because the transaction
 * holds the ledger's lock.
 */
const MAX_BYTES_PER_TRANSACTION = 1_000_000;
/** Searching a request with more than this number of characters can take a millisecond or more. */
const LARGE = 50_000;

/** A started action without a result counts as finished after this time. Milliseconds. */
const RESULT_TIMEOUT_MS = 86_400_000;

/**
 * Returns the reason why the action is still open, as the end of "it is …"; null if the action can be erased.
 * @param now the current time in milliseconds since the epoch
 */
export function findErasureBlocker(
  { status, approved_until, started_at }: Pick<ActionRow, "status" | "approved_until" | "started_at">,
  now: number,
): string | null {
  if (status === "pending_approval") return "pending: decide or cancel it first";
  if ((status === "allowed" || status === "approved") && approved_until !== null && approved_until > now)
    return `${status} and may still start: cancel it first, or erase it when its time to start is over`;
  if ((status === "executing" || status === "unknown") && started_at !== null && started_at + RESULT_TIMEOUT_MS > now)
    return "started without a result: erase it after its result was reported, or a day after its start";
  return null;
}

type ErasureCause = Pick<ErasureEntry, "cause" | "reason" | "by">;

export interface ErasureResult {
  erased: number;
  /** Actions that differ from their ledger entries. They are retained as evidence. */
  altered: number;
  /** Actions under a legal hold. They are not erased. */
  held: number;
  /** Ids of those holds. */
  holds: string[];
}

/** Splits actions into groups, each small enough for one transaction. A larger action is a group of its own. */
export function* groupBySize<T extends ActionRow>(rows: readonly T[]): Iterable<T[]> {
  let group: T[] = [];
  let size = 0;
  for (const row of rows) {
    const bytes = contentByteLength(row);
    if (group.length > 0 && size + bytes > MAX_BYTES_PER_TRANSACTION) {
      yield group;
      [group, size] = [[], 0];
    }
    group.push(row);
    size += bytes;
  }
  if (group.length > 0) yield group;
}

/** Adds the result of one transaction to a total. */
export function addErasureResult(total: ErasureResult, { erased, altered, held, holds }: ErasureResult): void {
  total.erased += erased;
  total.altered += altered;
  total.held += held;
  total.holds = [...new Set([...total.holds, ...holds])];
}

/**
 * Finds the actions that can be erased. Omits actions that are missing, open, erased, altered or under a legal hold.
 * Reads the holds under the ledger's lock, so that a hold that another process has just placed prevents the erasure.
 */
async function findErasable(
  host: CoreHost,
  tx: LedgerTransaction,
  ids: readonly string[],
): Promise<{ erasable: ActionRow[]; result: ErasureResult }> {
  const erasable: ActionRow[] = [];
  const result: ErasureResult = { erased: 0, altered: 0, held: 0, holds: [] };
  const findHold = await createHoldFinder(host, tx.state(legalHoldState), host.documents.within(tx));
  // Verify all actions before the first write, so that one altered action does not roll back the others.
  for (const id of ids) {
    const row = await tx.action(id);
    if (row === null || row.erased_at !== null || findErasureBlocker(row, tx.now) !== null) continue;
    try {
      verifyStoredContent(row, await verifyAgainstLedger(host, tx, row));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      result.altered++;
      continue;
    }
    const hold = findHold(row);
    if (hold === null) erasable.push(row);
    else addErasureResult(result, { erased: 0, altered: 0, held: 1, holds: [hold.id] });
  }
  return { erasable, result };
}

/** Erases those of the actions that can be erased, within a ledger transaction. */
export async function eraseActions(
  host: CoreHost,
  tx: LedgerTransaction,
  ids: readonly string[],
  cause: ErasureCause,
): Promise<ErasureResult> {
  const { erasable, result } = await findErasable(host, tx, ids);
  for (const row of erasable) {
    const digests = digestRejection(host, row, tx.now);
    const rejected = digests === null ? {} : { rejected: commitRejectionDigests(digests) };
    const entry = { type: "erasure", v: 1, ...actionEntryFields(row, tx.now), ...cause, ...rejected } as const;
    await tx.recordErasure(row, entry, digests);
  }
  // Remove limit uses that are too old to count.
  if (erasable.length > 0) await tx.pruneLimitUses(tx.now - USE_RETENTION_MS, PAGE_SIZE);
  return { ...result, erased: erasable.length };
}

/** Erases one part of the actions, such as the results, within a ledger transaction. Retains their requests. */
export async function eraseActionParts(
  host: CoreHost,
  tx: LedgerTransaction,
  ids: readonly string[],
  part: ErasablePart,
  reason: string,
): Promise<ErasureResult> {
  const { erasable, result } = await findErasable(host, tx, ids);
  const rows = erasable.filter((row) => row[part] !== null);
  for (const row of rows) {
    const entry = { type: "part_erasure", v: 1, ...actionEntryFields(row, tx.now), part, reason, by: null } as const;
    await tx.recordErasure(row, entry, null);
  }
  return { ...result, erased: rows.length };
}

export function eraseAction(host: CoreHost, credential: Credential, id: string, reason: string): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    const current = await confirmCredential(tx, credential, "actions:erase");
    const row = await visibleAction(tx, id, current);
    const open = row.erased_at === null ? findErasureBlocker(row, tx.now) : null;
    if (open !== null) throw new Refusal(ERRORS.open, `the action is ${open}`);
    if (row.erased_at === null) verifyStoredContent(row, await verifyAgainstLedger(host, tx, row));
    const by = toActor(current.key, current.principal);
    const { holds } = await eraseActions(host, tx, [id], { cause: "asked", reason, by });
    if (holds[0] !== undefined) throw actionHeldError(id, holds[0]);
    return rereadAction(tx, id);
  });
}

interface ErasureRequest {
  /** The reason of the erasure. If null, the actions are only counted. */
  reason: string | null;
  /** Restricts the erasure to actions created before this time. Milliseconds since the epoch. */
  until: number | null;
  agent_id: string | null;
  matchesContent: ContentFilter | null;
  cause: "asked" | "subject";
  /** Cursor: restricts the erasure to actions with a smaller sequence number. */
  before: number | null;
}

interface ErasureCount extends ErasureResult {
  looked_at: number;
  matched: number;
  /** Matching actions that are still open, so they are not erased. */
  open: number;
  next: number | null;
}

/** Counts or erases the matching actions, newest first. */
export async function eraseMatching(
  host: CoreHost,
  credential: Credential,
  erasureRequest: ErasureRequest,
  signal: AbortSignal,
): Promise<ErasureCount> {
  const { reason, until, agent_id, matchesContent: matches, cause } = erasureRequest;
  const count: ErasureCount = {
    looked_at: 0,
    matched: 0,
    open: 0,
    erased: 0,
    altered: 0,
    held: 0,
    holds: [],
    next: null,
  };
  let before = erasureRequest.before ?? Infinity;
  if (until !== null && erasureRequest.before === null) {
    const span = await host.storage.decisionSpan(0, until);
    if (span === null) return count;
    before = span.last + 1;
  }
  const end = performance.now() + MAX_MS;
  for (;;) {
    const rows = await host.storage.actions({
      visibility: withoutDelegations(credential).visibility,
      limit: PAGE_SIZE,
      ...(agent_id === null ? {} : { agent_id }),
      ...(before === Infinity ? {} : { before_seq: before }),
    });
    const due: ActionRow[] = [];
    for (const row of rows) {
      if (row.erased_at !== null || (until !== null && row.created_at >= until)) continue;
      if (matches === null || matches(row)) due.push(row);
      // Yield after a large request, so that other requests are served.
      if (matches !== null && row.request.length > LARGE) await setImmediate();
    }
    const closed = due.filter((row) => findErasureBlocker(row, host.clock()) === null);
    count.looked_at += rows.length;
    count.matched += due.length;
    count.open += due.length - closed.length;
    if (reason === null) addErasureResult(count, await countHeld(host, closed));
    else
      for (const group of groupBySize(closed)) {
        const done = await host.ledger.transact(async (tx) => {
          const current = await confirmCredential(tx, credential, "actions:erase");
          const ids = group.filter((row) => canSee(current.visibility, row)).map(({ id }) => id);
          return eraseActions(host, tx, ids, { cause, reason, by: toActor(current.key, current.principal) });
        });
        addErasureResult(count, done);
      }
    before = rows.at(-1)?.decision_seq ?? 0;
    if (rows.length < PAGE_SIZE) return count;
    if (count.looked_at >= MAX_SCANNED || performance.now() > end || signal.aborted) return { ...count, next: before };
    await setImmediate();
  }
}

/** Counts the actions that a legal hold covers now. */
async function countHeld(host: CoreHost, rows: readonly ActionRow[]): Promise<ErasureResult> {
  const findHold = await createHoldFinder(host, await host.state(legalHoldState), host.documents);
  const ids = rows.flatMap((row) => findHold(row)?.id ?? []);
  return { erased: 0, altered: 0, held: ids.length, holds: [...new Set(ids)] };
}
