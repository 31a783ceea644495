/** Erases requests and results from the store, and records who erased them and why. The ledger keeps its commitments. */
import { setImmediate } from "node:timers/promises";
import {
  actionEntryFields,
  confirmWithScope,
  type CoreHost,
  type ErasureEntry,
  findErasureBlocker,
  type LedgerTransaction,
  toActor,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { verifyAgainstLedger } from "./verify-record.ts";
import { rereadAction, visibleAction } from "./visible-action.ts";
import type { ContentFilter } from "./content-filter.ts";

/** Rows held in memory at a time. Each may be as large as a request. */
const PAGE = 50;
/** Limits of one HTTP request. The response says where the next one continues. */
const MAX_SCANNED = 5000;
const MAX_MS = 5000;
/** Length of a request, in characters, that takes at least a millisecond to search. */
const LARGE = 50_000;

type ErasureCause = Pick<ErasureEntry, "cause" | "reason" | "by">;

interface ErasureResult {
  erased: number;
  /** Actions that differ from their ledger entries. They are evidence, so they are not erased. */
  altered: number;
}

/** Erases the actions in one transaction. Skips open, unknown, erased and altered ones. */
export async function eraseActions(
  host: CoreHost,
  tx: LedgerTransaction,
  ids: readonly string[],
  cause: ErasureCause,
): Promise<ErasureResult> {
  const erasable: ActionRow[] = [];
  let altered = 0;
  // Verify all before the first write, so that one altered action does not roll back the others.
  for (const id of ids) {
    const row = await tx.action(id);
    if (row === null || row.erased_at !== null || findErasureBlocker(row, tx.now) !== null) continue;
    try {
      await verifyAgainstLedger(host, tx, row);
      erasable.push(row);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      altered++;
    }
  }
  for (const row of erasable) {
    tx.record({ type: "erasure", v: 1, ...actionEntryFields(row, tx.now), ...cause }, row.submitted_by);
    if (!(await tx.eraseAction(row.id, tx.now)))
      throw new Error(`${row.id} was not erased although the ledger's lock was held`);
  }
  // Remove limit uses that are too old to count.
  if (erasable.length > 0) await tx.pruneLimitUses(tx.now - USE_RETENTION_MS, PAGE);
  return { erased: erasable.length, altered };
}

export function eraseAction(host: CoreHost, credential: Credential, id: string, reason: string): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    const current = await confirmWithScope(tx, credential, "actions:erase");
    const row = await visibleAction(tx, id, current);
    const open = row.erased_at === null ? findErasureBlocker(row, tx.now) : null;
    if (open !== null) throw new Refusal("ACTION_OPEN", `the action is ${open}`);
    if (row.erased_at === null) await verifyAgainstLedger(host, tx, row);
    await eraseActions(host, tx, [id], { cause: "asked", reason, by: toActor(current.key, current.principal) });
    return rereadAction(tx, id);
  });
}

interface ErasureRequest {
  /** Why the actions are erased. Null: count them only. */
  reason: string | null;
  /** Only actions created before this time, in milliseconds since the epoch. */
  until: number | null;
  agent_id: string | null;
  matchesContent: ContentFilter | null;
  cause: "asked" | "subject";
  /** Cursor: only actions with a smaller sequence number. */
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
  wanted: ErasureRequest,
  signal: AbortSignal,
): Promise<ErasureCount> {
  const { reason, until, agent_id, matchesContent: holds, cause } = wanted;
  const count: ErasureCount = { looked_at: 0, matched: 0, open: 0, altered: 0, erased: 0, next: null };
  let before = wanted.before ?? Infinity;
  if (until !== null && wanted.before === null) {
    const span = await host.storage.decisionSpan(0, until);
    if (span === null) return count;
    before = span.last + 1;
  }
  const end = performance.now() + MAX_MS;
  for (;;) {
    const rows = await host.storage.actions({
      visibility: credential.visibility,
      limit: PAGE,
      ...(agent_id === null ? {} : { agent_id }),
      ...(before === Infinity ? {} : { before_seq: before }),
    });
    const due: ActionRow[] = [];
    for (const row of rows) {
      if (row.erased_at !== null || (until !== null && row.created_at >= until)) continue;
      if (holds === null || holds(row)) due.push(row);
      // Yield after a large request, so that other requests are served.
      if (holds !== null && row.request.length > LARGE) await setImmediate();
    }
    const closed = due.filter((row) => findErasureBlocker(row, host.clock()) === null);
    count.looked_at += rows.length;
    count.matched += due.length;
    count.open += due.length - closed.length;
    if (reason !== null && closed.length > 0) {
      const ids = closed.map(({ id }) => id);
      const done = await host.ledger.transact(async (tx) => {
        const current = await confirmWithScope(tx, credential, "actions:erase");
        return eraseActions(host, tx, ids, { cause, reason, by: toActor(current.key, current.principal) });
      });
      count.erased += done.erased;
      count.altered += done.altered;
    }
    before = rows.at(-1)?.decision_seq ?? 0;
    if (rows.length < PAGE) return count;
    if (count.looked_at >= MAX_SCANNED || performance.now() > end || signal.aborted) return { ...count, next: before };
    await setImmediate();
  }
}
