/** Compares every action, its votes and its limit uses with the ledger entries. */
import type { FeatureAuditor } from "../contract/audit.ts";
import type { ActionRow, EntryRow } from "../contract/storage.ts";
import { type ActionEntry, type ActionHistory, readActionHistory } from "../domain/action-history.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { effectiveRequest } from "../domain/edited-request.ts";
import { applyDecisionObligations } from "../domain/obligations.ts";
import { decodeEntry, type DecisionEntry } from "../domain/entries.ts";
import { toHex } from "../domain/hash.ts";
import { restoreEntry, restoreFacts } from "../domain/salted-facts.ts";
import { USE_RETENTION_MS } from "../domain/limit-uses.ts";
import { pinsMatchEntry } from "../domain/pins.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { type ContentPart, findAlteredContent } from "../domain/recorded-content.ts";
import { commitDigest, encodeRequest } from "../domain/request.ts";
import { findCountingPolicies, readCountedRow, recomputeCountedRows } from "./counted-rows.ts";
import { createRecordedHistoriesCheck, type CheckRecordedHistories } from "./recorded-histories.ts";
import {
  prefixFaults,
  reportDifferences,
  forEachConcurrently,
  retryWhileFaulty,
  type AuditedStore,
  type ReportFault,
} from "./report.ts";

const PAGE_SIZE = 200;
const REQUEST_MEMBERS = ["agent_id", "context", "operation", "params", "tool"];
const CONTENT_FAULTS: Record<ContentPart, string> = {
  request: "its request cannot be read, or does not hash to its request hash",
  request_hash: "its request hash and salt do not match the commitment in the ledger",
  effective: "its effective request does not match the commitment in the ledger",
  meta: "its meta does not match the commitment in the ledger",
  questions: "its questions and answers do not match the commitments in the ledger",
  past: "the history that its decisions read does not match the commitment in the ledger",
  result: "its result does not match the commitment in the ledger",
};

export interface LedgerTotals {
  size: number;
  decisions: number;
  /** Number of entries that belong to actions: decisions, votes, starts and results. */
  actionEntries: number;
  /** Number of entries that the store could not return. Their types are unknown. */
  unread: number;
  /** Latest time of an entry. Milliseconds since the epoch. */
  latest: number;
}

interface ActionsAudit {
  store: AuditedStore;
  totals: LedgerTotals;
  /** Returns null if the store does not have the set. The audit of policies reports missing sets. */
  compiled(digest: string | null): Promise<CompiledPolicySet | null>;
  /** Checks of features. */
  auditors: readonly FeatureAuditor[];
  progress(done: number): void;
  fault: ReportFault;
}

/** Audits all actions. Resolves to the number of actions. */
export async function auditActions(audit: ActionsAudit): Promise<number> {
  const { store, totals, fault } = audit;
  const checkHistories = createRecordedHistoriesCheck(store);
  let before = totals.size;
  let [done, entries, votes] = [0, 0, 0];
  for (;;) {
    const rows = await store.actions({ visibility: { all: true }, before_seq: before, limit: PAGE_SIZE });
    const last = rows.at(-1);
    if (last === undefined) break;
    await forEachConcurrently(rows, async (pageRow) => {
      let row: ActionRow | null = null;
      let counted = { entries: 0, votes: 0 };
      await retryWhileFaulty(`action ${pageRow.id}`, fault, async (report) => {
        row = row === null ? pageRow : await store.action(pageRow.id);
        if (row === null) report(`action ${pageRow.id} disappeared from the store during the audit`);
        else counted = await auditAction(audit, row, checkHistories, prefixFaults(`action ${pageRow.id}`, report));
      });
      entries += counted.entries;
      votes += counted.votes;
    });
    done += rows.length;
    before = last.decision_seq;
    audit.progress(Math.min(done, totals.decisions));
  }
  // A decision or a vote could be among entries that could not be read, so compare the counts only if all entries were
  // read.
  const isRead = totals.unread === 0;
  if (done < totals.decisions || done > totals.decisions + totals.unread)
    fault(`the store has ${done} actions, but the ledger has ${totals.decisions} decisions`);
  else if (isRead && entries !== totals.actionEntries)
    fault(`the ledger has ${totals.actionEntries} entries of actions, but only ${entries} belong to a stored action`);
  const [newest] = await store.actions({ visibility: { all: true }, limit: 1 });
  // Read the head after the action, so that it covers every entry of the action.
  const head = await store.head();
  if (newest !== undefined && newest.decision_seq >= head.size)
    fault(
      `action ${newest.id} is stored with entry ${newest.decision_seq}, but the ledger has only ${head.size} entries`,
    );
  const stored = await store.copying?.count("approvals");
  // A running service may have stored newer votes after the entries were counted.
  if (isRead && stored !== undefined && head.size === totals.size && stored !== votes)
    fault(`the store has ${stored} votes, but the ledger has ${votes}`);
  return done;
}

async function auditAction(
  audit: ActionsAudit,
  row: ActionRow,
  checkHistories: CheckRecordedHistories,
  reportFault: ReportFault,
): Promise<{ entries: number; votes: number }> {
  const rows = await audit.store.entriesOfAction(row.id);
  const history = readActionHistory(rows);
  if (history === null) {
    reportFault("its first entry is not a decision");
    return { entries: 0, votes: 0 };
  }
  const { first, entries, action } = history;
  history.faults.forEach(reportFault);
  checkSignedDecisions(rows, reportFault);
  for (const auditor of audit.auditors) auditor.checkVotes?.(action, entries, reportFault);
  reportDifferences(action, row, reportFault);
  for (const { seq, submitted_by } of rows)
    if (submitted_by !== action.submitted_by) reportFault(`entry ${seq} is stored with a different submitter`);
  const altered = findAlteredContent(row, history);
  if (action.erased_at !== null) checkErased(row, altered, reportFault);
  else {
    for (const part of altered) reportFault(CONTENT_FAULTS[part]);
    for (const part of history.erasedParts)
      if (row[part] !== null) reportFault(`its ${part} was erased, but is still in the store`);
    for (const entry of entries)
      if ("facts" in entry && !pinsMatchEntry(entry, row.salt, restoreFacts(entry.facts, row.past).sources))
        reportFault(`the pinned facts of entry ${entry.seq} do not match the commitment in the ledger`);
    await checkHistories(row, reportFault);
  }
  await checkVotes(audit.store, row, history, reportFault);
  if (action.erased_at === null && !altered.includes("request")) {
    const request = JSON.parse(row.request) as ActionRequest;
    checkFormat(row, request, reportFault);
    checkObligations(row, request, first, reportFault);
    if (!altered.includes("effective")) await checkCounted(audit, row, history, reportFault);
    const { facts } = restoreEntry(first, row.past);
    const policies = (): Promise<CompiledPolicySet | null> => audit.compiled(first.policy_set);
    for (const auditor of audit.auditors)
      await auditor.checkDecision?.({ entry: first, request, facts, policies }, reportFault);
  }
  const { size } = audit.totals;
  return {
    entries: rows.filter(({ seq }) => seq < size).length,
    votes: history.votes.filter(({ seq }) => seq < size).length,
  };
}

/**
 * Checks that each signed vote refers to the newest request for approval of its action. If the vote itself caused that
 * request, it can refer to the previous one.
 */
function checkSignedDecisions(rows: readonly EntryRow[], reportFault: ReportFault): void {
  const requests: string[] = [];
  let previous: ActionEntry | null = null;
  for (const row of rows.filter(({ type }) => !type.includes(":"))) {
    const entry = decodeEntry<ActionEntry>(row.bytes);
    if (entry.type === "approval" && entry.gesture !== null) {
      const isOwn = previous?.type === "redecision" && previous.occasion === "vote";
      if (!requests.slice(isOwn ? -2 : -1).includes(entry.gesture.decision))
        reportFault(`the signed vote of entry ${row.seq} refers to a different decision`);
    }
    if ((entry.type === "decision" || entry.type === "redecision") && entry.status === "pending_approval")
      requests.push(toHex(row.leaf_hash));
    previous = entry;
  }
}

const ERASED_COLUMNS = ["request", "past", "meta", "questions", "effective", "result"] as const;

/**
 * Checks that the store no longer contains a request or result that the ledger records as erased.
 * @param altered the parts of a rejected request that differ from the ledger
 */
function checkErased(row: ActionRow, altered: readonly ContentPart[], reportFault: ReportFault): void {
  for (const column of ERASED_COLUMNS)
    if (row[column] !== null && row[column] !== "")
      reportFault(`it was erased, but its ${column} is still in the store`);
  if (altered.length > 0)
    reportFault("it was erased, but its request_hash, effective_hash and salt are not those that the ledger records");
}

/**
 * Checks that the stored request is canonical JSON, or has the client's order of members. Any other form could differ in
 * meaning.
 */
function checkFormat(row: ActionRow, request: ActionRequest, reportFault: ReportFault): void {
  const whole = Object.keys(request).sort().join() === REQUEST_MEMBERS.join();
  if (!whole || (row.request !== encodeRequest(request).text && row.request !== JSON.stringify(request)))
    reportFault("its request is not in the format that the service writes");
}

/** Checks that the decision changed the request exactly as its obligations require. */
function checkObligations(
  { salt }: ActionRow,
  request: ActionRequest,
  { decision, effective }: DecisionEntry,
  reportFault: ReportFault,
): void {
  const obliged = applyDecisionObligations(request, decision);
  const commitment = obliged === null ? undefined : commitDigest(salt, encodeRequest(obliged).hash);
  if (commitment !== effective) reportFault("its request was not changed as its obligations require");
}

async function checkVotes(
  store: AuditedStore,
  row: ActionRow,
  history: ActionHistory,
  reportFault: ReportFault,
): Promise<void> {
  const mayHaveVotes = row.quorum !== null || history.votes.length > 0 || store.copying === undefined;
  const stored = mayHaveVotes ? await store.approvals(row.id) : [];
  if (stored.length !== history.votes.length)
    reportFault(`it has ${stored.length} votes in the store and ${history.votes.length} in the ledger`);
  for (const vote of history.votes) {
    const storedVote = stored.find(({ seq }) => seq === vote.seq);
    if (storedVote === undefined) reportFault(`the vote of entry ${vote.seq} is not in the store`);
    else reportDifferences(vote, storedVote, prefixFaults(`the vote of entry ${vote.seq}`, reportFault));
  }
}

/**
 * Checks that the store has a row for each limit use of the action and for each history that contains it. Skips rows
 * that have expired, because they may have been deleted. `audit-rows.ts` checks the reverse: that each stored row
 * belongs to a decision.
 */
async function checkCounted(
  { store: { copying }, totals, compiled }: ActionsAudit,
  row: ActionRow,
  history: ActionHistory,
  reportFault: ReportFault,
): Promise<void> {
  const request = effectiveRequest(row);
  const set = copying === undefined ? null : await compiled(findCountingPolicies(history));
  if (copying === undefined || set === null || request === null) return;
  const { uses, places } = recomputeCountedRows(set, request, history, row.past);
  const isCurrent = ({ until }: { until: number }): boolean => until + USE_RETENTION_MS > totals.latest;
  for (const use of uses.filter(isCurrent))
    if ((await readCountedRow(copying, "limit_uses", use)) === null)
      reportFault(`its use of the limit "${use.limit_name}" of "${use.policy}" is not in the store`);
  for (const membership of places.filter(isCurrent))
    if ((await readCountedRow(copying, "past_actions", membership)) === null)
      reportFault(`it is missing from the history of the policy "${membership.policy}"`);
}
