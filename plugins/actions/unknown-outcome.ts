/**
 * Actions whose outcome is unknown, because they were started and no result was reported in time. A background task
 * records that. A person or a probe then settles the outcome. The key that started the action can still report its
 * result.
 */
import { setImmediate } from "node:timers/promises";
import {
  actionEntryFields,
  canonicalText,
  commitResult,
  confirmCredential,
  type CoreHost,
  createRepeatingTask,
  type JsonObject,
  type LeaderLease,
  type LedgerTransaction,
  toActor,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { reactToResult } from "./result.ts";
import { assertNotErased, visibleAction } from "./visible-action.ts";
import { findMatchingHistory, verifyAgainstLedger } from "./verify-record.ts";

const PAGE_SIZE = 100;
const MAX_INTERVAL_MS = 60_000;
const AFTER_FAILURE_MS = 5_000;

interface UnknownOutcomes {
  start(): void;
  /**
   * Records every outcome that has become unknown, if this process is the leader. Resolves to the number of recorded
   * outcomes. Rejects if the store fails.
   */
  sweep(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Creates the background task. One process per store runs it; running it twice is harmless.
 * @param afterMs timeout for the result of a started action, after which its outcome is unknown, in milliseconds
 */
export function createUnknownOutcomeTask(host: CoreHost, afterMs: number): UnknownOutcomes {
  let stopped = false;
  let lease: LeaderLease | null = null;

  async function sweep(): Promise<number> {
    lease ??= host.leaderLease("unknown-outcomes");
    const startedBefore = host.clock() - afterMs;
    // An action that started before `startedBefore` was also created before it. So scan backwards from the newest
    // action that was created before `startedBefore`.
    const span = await host.storage.decisionSpan(0, startedBefore);
    let marked = 0;
    for (let before_seq = span === null ? 0 : span.last + 1; !stopped && (await lease.isLeader());) {
      const page = await host.storage.actions({
        visibility: { all: true },
        status: "executing",
        before_seq,
        limit: PAGE_SIZE,
      });
      const due = page.filter((row) => row.erased_at === null && (row.started_at ?? Infinity) <= startedBefore);
      if (due.length > 0) marked += await host.ledger.transact((tx) => markUnknown(host, tx, due, afterMs));
      const last = page.at(-1);
      if (page.length < PAGE_SIZE || last === undefined) break;
      before_seq = last.decision_seq;
      await setImmediate();
    }
    return marked;
  }

  const rounds = createRepeatingTask({
    task: sweep,
    everyMs: Math.min(MAX_INTERVAL_MS, Math.max(1_000, afterMs / 4)),
    afterFailureMs: AFTER_FAILURE_MS,
    onFailure: (error) =>
      host.log.warn("could not record which outcomes are unknown; retrying", { error: String(error) }),
  });

  return {
    sweep,
    start: () => rounds.start(),
    async stop() {
      stopped = true;
      await rounds.stop();
      await lease?.release().catch(() => undefined);
    },
  };
}

async function markUnknown(
  host: CoreHost,
  tx: LedgerTransaction,
  due: readonly ActionRow[],
  afterMs: number,
): Promise<number> {
  let marked = 0;
  for (const { id } of due) {
    const row = await tx.action(id);
    // A result may have been recorded since the scan, and the ledger's clock may be behind this process's clock.
    if (row === null || row.status !== "executing" || row.erased_at !== null) continue;
    if ((row.started_at ?? Infinity) > tx.now - afterMs) continue;
    const history = await findMatchingHistory(host, tx, row);
    if (history === null) continue;
    tx.recordChange(row, null, {
      type: "execution",
      v: 1,
      ...actionEntryFields(row, tx.now),
      phase: "no_result",
      by: null,
      permit: null,
      attempt: null,
      success: null,
      result: null,
      comment: null,
      status: "unknown",
    });
    for (const reaction of host.reactions) await reaction.resultMissing?.(tx, row, history.first.facts);
    marked++;
  }
  return marked;
}

/** What a person or a probe found out about an unknown outcome. */
interface Settlement {
  success: boolean;
  /** How the person or probe knows the outcome. Stored in the ledger forever. */
  reason: string;
  meta: JsonObject;
}

/**
 * Settles the unknown outcome of an action, once. Throws OUTCOME_NOT_UNKNOWN in any other state.
 * @param credential credential of a person or a probe, with the scope `actions:settle`
 */
export function settleOutcome(
  host: CoreHost,
  credential: Credential,
  id: string,
  { success, reason, meta }: Settlement,
): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    const current = await confirmCredential(tx, credential, "actions:settle");
    const row = await visibleAction(tx, id, current);
    assertNotErased(row);
    const history = await verifyAgainstLedger(host, tx, row);
    if (row.status !== "unknown")
      throw new Refusal(
        "OUTCOME_NOT_UNKNOWN",
        `the action is ${row.status}; only an action whose status is unknown can be settled`,
      );
    const result = { error: success ? null : reason, meta, success };
    const by = toActor(current.key, current.principal);
    const entry = {
      type: "execution",
      v: 1,
      ...actionEntryFields(row, tx.now),
      phase: "result",
      by,
      permit: null,
      attempt: null,
      success,
      result: commitResult(row.salt, result),
      comment: reason,
      status: success ? "succeeded" : "failed",
    } as const;
    const { row: settled } = tx.recordChange(row, null, entry, { result: canonicalText(result) });
    await reactToResult(host, tx, row, { success, by, facts: [history.first.facts, history.newest.facts] });
    return settled;
  });
}
