/** Takes what was asked and reported out of the store, and records who did and why. The ledger keeps its commitments. */
import { setImmediate } from "node:timers/promises";
import {
  toActor,
  confirmWithScope,
  type Credential,
  type Host,
  type LedgerTransaction,
  Refusal,
} from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { actionEntryFields, type ErasureEntry, findErasureBlocker, USE_RETENTION_MS } from "../../src/core.ts";
import { verifyAgainstLedger } from "./verify-record.ts";
import { rereadAction, visibleAction } from "./rows.ts";
import type { ContentFilter } from "./content-filter.ts";

/** Rows that are held at a time: each may be as large as a request. */
const PAGE = 50;
/** Of one request: what is behind it is for the next. */
const MOST_LOOKED_AT = 5000;
const MOST_MS = 5000;
/** Characters of a request that take a millisecond or more to look through. */
const LARGE = 50_000;

type ErasureCause = Pick<ErasureEntry, "cause" | "reason" | "by">;

export interface ErasureResult {
  erased: number;
  /** Those that are not what the ledger says: they are evidence, and stay. */
  altered: number;
}

/** What is open, gone or erased already stays as it is. */
export async function eraseActions(
  host: Host,
  tx: LedgerTransaction,
  ids: readonly string[],
  because: ErasureCause,
): Promise<ErasureResult> {
  const over: ActionRow[] = [];
  let altered = 0;
  // All are looked at before the first is written: what one of them is refused for costs the others nothing.
  for (const id of ids) {
    const row = await tx.action(id);
    if (row === null || row.erased_at !== null || findErasureBlocker(row, tx.now) !== null) continue;
    try {
      await verifyAgainstLedger(host, tx, row);
      over.push(row);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      altered++;
    }
  }
  for (const row of over) {
    tx.record({ type: "erasure", v: 1, ...actionEntryFields(row, tx.now), ...because }, row.submitted_by);
    if (!(await tx.eraseAction(row.id, tx.now)))
      throw new Error(`${row.id} was not erased although the ledger's lock was held`);
  }
  // What they counted against limits goes when it cannot count any more.
  if (over.length > 0) await tx.pruneLimitUses(tx.now - USE_RETENTION_MS, PAGE);
  return { erased: over.length, altered };
}

export function eraseAction(host: Host, credential: Credential, id: string, reason: string): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    const who = await confirmWithScope(tx, credential, "actions:erase");
    const row = await visibleAction(tx, id, who);
    const open = row.erased_at === null ? findErasureBlocker(row, tx.now) : null;
    if (open !== null) throw new Refusal("ACTION_OPEN", `the action is ${open}`);
    if (row.erased_at === null) await verifyAgainstLedger(host, tx, row);
    await eraseActions(host, tx, [id], { cause: "asked", reason, by: toActor(who.key, who.principal) });
    return rereadAction(tx, id);
  });
}

export interface ErasureRequest {
  /** Null: only counts. */
  reason: string | null;
  /** Created before; milliseconds. */
  until: number | null;
  agent_id: string | null;
  matchesContent: ContentFilter | null;
  /** Only actions with a smaller sequence: the cursor. */
  before: number | null;
}

export interface ErasureCount extends ErasureResult {
  looked_at: number;
  matched: number;
  /** Of those that match: not over yet. */
  open: number;
  next: number | null;
}

/** Newest first. */
export async function eraseMatching(
  host: Host,
  credential: Credential,
  wanted: ErasureRequest,
  signal: AbortSignal,
): Promise<ErasureCount> {
  const { reason, until, agent_id, matchesContent: holds } = wanted;
  const count: ErasureCount = { looked_at: 0, matched: 0, open: 0, altered: 0, erased: 0, next: null };
  let before = wanted.before ?? Infinity;
  if (until !== null && wanted.before === null) {
    const span = await host.storage.decisionSpan(0, until);
    if (span === null) return count;
    before = span.last + 1;
  }
  const end = performance.now() + MOST_MS;
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
      // Others have their turn between large ones.
      if (holds !== null && row.request.length > LARGE) await setImmediate();
    }
    const over = due.filter((row) => findErasureBlocker(row, host.clock()) === null);
    count.looked_at += rows.length;
    count.matched += due.length;
    count.open += due.length - over.length;
    if (reason !== null && over.length > 0) {
      const ids = over.map(({ id }) => id);
      const done = await host.ledger.transact(async (tx) => {
        const who = await confirmWithScope(tx, credential, "actions:erase");
        return eraseActions(host, tx, ids, { cause: "asked", reason, by: toActor(who.key, who.principal) });
      });
      count.erased += done.erased;
      count.altered += done.altered;
    }
    before = rows.at(-1)?.decision_seq ?? 0;
    if (rows.length < PAGE) return count;
    if (count.looked_at >= MOST_LOOKED_AT || performance.now() > end || signal.aborted)
      return { ...count, next: before };
    await setImmediate();
  }
}
