/** One result of what was started, by the key that started it. */
import { toActor, type Credential, type Host, type LedgerTransaction, canSee, Refusal } from "../../src/plugin.ts";
import { actionEntryFields, canonicalText, commitResult, type JsonObject, type Prefetch } from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { verifyAgainstLedger } from "./verify-record.ts";
import { assertNotErased, actionNotFound } from "./rows.ts";

/** A result as it is recorded under the lock. */
export interface ResultCall {
  id: string;
  /** SHA-256 of the text that the start named its attempt by, hex. */
  attempt: string | null;
  result: { error: string | null; meta: JsonObject; success: boolean };
}

export interface ReportedResult {
  row: ActionRow;
  /** This very result was reported before. */
  isRetry: boolean;
}

/**
 * One that names the attempt of its start may be reported again: it is answered as the first time.
 * @param who as the lock confirmed it
 */
export async function recordResult(
  host: Host,
  tx: LedgerTransaction,
  who: Credential,
  { id, attempt, result }: ResultCall,
): Promise<ReportedResult> {
  const row = await tx.action(id);
  const starter = row !== null && row.started_by === who.key.id;
  if (row === null || !(canSee(who.visibility, row) || starter)) throw actionNotFound(id);
  assertNotErased(row);
  const { start, result: reported } = await verifyAgainstLedger(host, tx, row);
  const ofStart = starter && attempt !== null && start?.attempt === attempt;
  const commitment = commitResult(row.salt, result);
  // By the ledger, and not by the text in the row, which nothing vouches for.
  if (ofStart && reported === commitment) return { row: { ...row, result: canonicalText(result) }, isRetry: true };
  if (row.status !== "executing") {
    const how = row.result === null ? "start it first" : "its result was reported already";
    throw new Refusal("ACTION_NOT_STARTED", `the action is ${row.status}; ${how}`);
  }
  if (!starter)
    throw new Refusal("NOT_THE_EXECUTOR", "another key started this action; only that key reports its result");
  if (attempt !== null && !ofStart)
    throw new Refusal(
      "NOT_THE_EXECUTOR",
      "another attempt started this action; its result is not this one's to report",
    );
  const status = result.success ? "succeeded" : "failed";
  tx.record(
    {
      type: "execution",
      v: 3,
      ...actionEntryFields(row, tx.now),
      phase: "result",
      by: toActor(who.key, who.principal),
      permit: null,
      attempt: null,
      success: result.success,
      result: commitment,
      status,
    },
    row.submitted_by,
  );
  const change = { status, result: canonicalText(result), updated_at: tx.now } as const;
  tx.expectChange(tx.updateAction(id, { status: "executing" }, change));
  return { row: { ...row, ...change }, isRetry: false };
}

export const prefetchResult =
  ({ id }: ResultCall): Prefetch =>
  () => ({ history: id });
