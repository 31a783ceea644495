/** Compares every action, its votes and its limit uses with the ledger entries. */
import type { FeatureAuditor } from "../contract/audit.ts";
import type { ActionRow, EntryRow } from "../contract/storage.ts";
import { buildActionHistory, findHistoryTime, type ActionEntry, type ActionHistory } from "../domain/action-history.ts";
import { parseEntryTime } from "../domain/time.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { canonicalText } from "../domain/canonical.ts";
import { matchesRecordedEdit, effectiveRequest } from "../domain/edited-request.ts";
import { matchesRejectionDigests } from "../domain/erased-rejection.ts";
import { applyDecisionObligations } from "../domain/obligations.ts";
import { decodeEntry, type DecisionEntry, type RedecisionEntry } from "../domain/entries.ts";
import { toHex } from "../domain/hash.ts";
import { matchesCommitment } from "../domain/salted-commitment.ts";
import { factsMatchCommitments, restoreEntry, restoreFacts } from "../domain/salted-facts.ts";
import { type LimitUse, recomputeLimitUses, USE_RETENTION_MS } from "../domain/limit-uses.ts";
import { recomputeMemberships } from "../domain/policy/decide/effect-keys.ts";
import { pinsMatchEntry } from "../domain/pins.ts";
import { matchesRecordedQuestions } from "../domain/questions.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import { commitDigest, commitResult, encodeRequest } from "../domain/request.ts";
import { createRecordedHistoriesCheck, type CheckRecordedHistories } from "./recorded-histories.ts";
import {
  prefixFaults,
  reportDifferences,
  forEachConcurrently,
  retryWhileFaulty,
  type AuditedStore,
  type ReportFault,
} from "./report.ts";

const PAGE = 200;
const REQUEST_MEMBERS = ["agent_id", "context", "operation", "params", "tool"];
/** Number of ids that share a prefix: they differ only in the last hexadecimal digit. */
const IDS_PER_PREFIX = 16;

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
    const rows = await store.actions({ visibility: { all: true }, before_seq: before, limit: PAGE });
    const last = rows.at(-1);
    if (last === undefined) break;
    await forEachConcurrently(rows, async (given) => {
      let row: ActionRow | null = null;
      let counted = { entries: 0, votes: 0 };
      await retryWhileFaulty(`action ${given.id}`, fault, async (report) => {
        row = row === null ? given : await store.action(given.id);
        if (row === null) report(`action ${given.id} disappeared from the store during the audit`);
        else counted = await auditAction(audit, row, checkHistories, prefixFaults(`action ${given.id}`, report));
      });
      entries += counted.entries;
      votes += counted.votes;
    });
    done += rows.length;
    before = last.decision_seq;
    audit.progress(Math.min(done, totals.decisions));
  }
  // An entry that could not be read might be a decision or a vote, so compare counts only if all entries were read.
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
  fault: ReportFault,
): Promise<{ entries: number; votes: number }> {
  const rows = await audit.store.entriesOfAction(row.id);
  // Entries of plugins about an action do not change the action.
  const actionRows = rows.filter(({ type }) => !type.includes(":"));
  const [first] = actionRows;
  const history = first === undefined ? null : buildActionHistory(actionRows.map(entryOf), toHex(first.leaf_hash));
  if (history === null) {
    fault("its first entry is not a decision");
    return { entries: 0, votes: 0 };
  }
  history.faults.forEach(fault);
  checkSignedDecisions(actionRows, fault);
  for (const auditor of audit.auditors) auditor.checkVotes?.(history.action, actionRows.map(entryOf), fault);
  reportDifferences(history.action, row, fault);
  for (const { seq, submitted_by } of rows)
    if (submitted_by !== history.action.submitted_by) fault(`entry ${seq} is stored with a different submitter`);
  let request: ActionRequest | null = null;
  if (history.action.erased_at !== null) checkErased(row, history.rejected, fault);
  else {
    request = openRequest(row, (entryOf(first as EntryRow) as DecisionEntry).commitment, fault);
    if (!matchesRecordedEdit(history.edit, row))
      fault("its effective request does not match the commitment in the ledger");
    checkObligations(row, request, entryOf(first as EntryRow) as DecisionEntry, fault);
    for (const part of history.erasedParts)
      if (row[part] !== null) fault(`its ${part} was erased, but is still in the store`);
    checkResult(row, history, fault);
    checkCommitments(row, actionRows.map(entryOf), history, fault);
    await checkHistories(row, fault);
  }
  await checkVotes(audit.store, row, history, fault);
  if (request !== null) {
    const decision = entryOf(first as EntryRow) as DecisionEntry & { seq: number };
    // If an approver changed the request, the changed request counts against the limits.
    const counted = nullIfThrows(() => effectiveRequest(row)) ?? request;
    const basis = restoreEntry(history.edit?.entry ?? decision, row.past);
    await checkUses(audit, counted, history, basis, fault);
    await checkPlaces(audit, counted, history, basis, fault);
    const facts = restoreFacts(decision.facts, row.past);
    const policies = (): Promise<CompiledPolicySet | null> => audit.compiled(decision.policy_set);
    for (const auditor of audit.auditors)
      await auditor.checkDecision?.({ entry: decision, request, facts, policies }, fault);
  }
  const { size } = audit.totals;
  return {
    entries: rows.filter(({ seq }) => seq < size).length,
    votes: history.votes.filter(({ seq }) => seq < size).length,
  };
}

/**
 * Checks that each signed vote refers to the newest entry that made the action pending. If the vote itself caused that
 * entry, the vote can also refer to the previous such entry.
 */
function checkSignedDecisions(rows: readonly EntryRow[], fault: ReportFault): void {
  const requests: string[] = [];
  let previous: ActionEntry | null = null;
  for (const row of rows) {
    const entry = entryOf(row);
    if (entry.type === "approval" && entry.gesture !== null) {
      const isOwn = previous?.type === "redecision" && previous.occasion === "vote";
      if (!requests.slice(isOwn ? -2 : -1).includes(entry.gesture.decision))
        fault(`the signed vote of entry ${row.seq} refers to a different decision`);
    }
    if ((entry.type === "decision" || entry.type === "redecision") && entry.status === "pending_approval")
      requests.push(toHex(row.leaf_hash));
    previous = entry;
  }
}

function entryOf({ bytes }: EntryRow): ActionEntry {
  return decodeEntry<ActionEntry>(bytes);
}

const ERASED_COLUMNS = ["request", "past", "meta", "questions", "effective", "result"] as const;

/**
 * Checks that the store no longer contains a request or result that the ledger records as erased.
 * @param rejected commitments to the digests that remain of a rejected request
 */
function checkErased(row: ActionRow, rejected: readonly string[], fault: ReportFault): void {
  for (const column of ERASED_COLUMNS)
    if (row[column] !== null && row[column] !== "") fault(`it was erased, but its ${column} is still in the store`);
  if (!matchesRejectionDigests(rejected, row))
    fault("it was erased, but its request_hash, effective_hash and salt are not those that the ledger records");
}

/** Returns the stored request if it matches the commitment in the ledger; else reports a fault and returns null. */
function openRequest(row: ActionRow, commitment: string, fault: ReportFault): ActionRequest | null {
  const request = nullIfThrows(() => JSON.parse(row.request) as ActionRequest);
  const sealed = request === null ? null : nullIfThrows(() => encodeRequest(request));
  if (request === null || sealed === null) {
    fault("its request cannot be read");
    return null;
  }
  const before = sealed.hash === row.request_hash;
  if (!before) fault("its request does not hash to its request hash");
  if (nullIfThrows(() => commitDigest(row.salt, row.request_hash)) !== commitment)
    fault("its request hash and salt do not match the commitment in the ledger");
  const whole = Object.keys(request).sort().join() === REQUEST_MEMBERS.join();
  // The stored request must be canonical JSON, or have the client's order of members. Any other form could differ in
  // meaning.
  if (!whole || (row.request !== sealed.text && row.request !== JSON.stringify(request)))
    fault("its request is not in the format that the service writes");
  return before ? request : null;
}

/** Checks that the decision changed the request exactly as its obligations require. */
function checkObligations(
  { salt }: ActionRow,
  request: ActionRequest | null,
  { decision, effective }: DecisionEntry,
  fault: ReportFault,
): void {
  const obliged = request === null ? null : applyDecisionObligations(request, decision);
  const commitment = obliged === null ? undefined : commitDigest(salt, encodeRequest(obliged).hash);
  if (request !== null && commitment !== effective) fault("its request was not changed as its obligations say");
}

function checkResult(row: ActionRow, { result: commitment, erasedParts }: ActionHistory, fault: ReportFault): void {
  if (erasedParts.includes("result")) return;
  if (commitment === null) {
    if (row.result !== null) fault("it has a result, but none was reported");
    return;
  }
  if (row.result === null || !opensResult(row.result, row.salt, commitment))
    fault("its result does not match the commitment in the ledger");
}

function opensResult(text: string, salt: string, commitment: string): boolean {
  try {
    const result = JSON.parse(text) as Parameters<typeof commitResult>[1];
    return commitResult(salt, result) === commitment && canonicalText(result) === text;
  } catch {
    return false;
  }
}

function checkCommitments(
  { past, meta, questions, salt }: ActionRow,
  entries: readonly ActionEntry[],
  history: ActionHistory,
  fault: ReportFault,
): void {
  if (!factsMatchCommitments(history.past, past))
    fault("the history that its decisions read does not match the commitment in the ledger");
  for (const entry of entries)
    if ("facts" in entry && !pinsMatchEntry(entry, salt, restoreFacts(entry.facts, past).sources))
      fault(`the pinned facts of entry ${entry.seq} do not match the commitment in the ledger`);
  const [first] = entries;
  const commitment = first?.type === "decision" ? first.meta : null;
  const { erasedParts } = history;
  if (!erasedParts.includes("meta") && !matchesCommitment(commitment, meta))
    fault("its meta does not match the commitment in the ledger");
  if (!erasedParts.includes("questions") && !matchesRecordedQuestions(history.questions, questions))
    fault("its questions and answers do not match the commitments in the ledger");
}

async function checkVotes(
  store: AuditedStore,
  row: ActionRow,
  history: ActionHistory,
  fault: ReportFault,
): Promise<void> {
  const mayHaveVotes = row.quorum !== null || history.votes.length > 0 || store.copying === undefined;
  const stored = mayHaveVotes ? await store.approvals(row.id) : [];
  if (stored.length !== history.votes.length)
    fault(`it has ${stored.length} votes in the store and ${history.votes.length} in the ledger`);
  for (const vote of history.votes) {
    const storedVote = stored.find(({ seq }) => seq === vote.seq);
    if (storedVote === undefined) fault(`the vote of entry ${vote.seq} is not in the store`);
    else reportDifferences(vote, storedVote, prefixFaults(`the vote of entry ${vote.seq}`, fault));
  }
}

/**
 * Checks that the store has a row for each limit use of this decision, except uses that have expired and may have been
 * deleted. `audit-rows.ts` checks the reverse: that every stored use belongs to a decision.
 */
async function checkUses(
  { store, totals, compiled }: ActionsAudit,
  request: ActionRequest,
  history: ActionHistory,
  entry: DecisionEntry | RedecisionEntry,
  fault: ReportFault,
): Promise<void> {
  const { copying } = store;
  if (copying === undefined || (!entry.facts.past && (entry.facts.limits ?? []).length === 0)) return;
  const set = await compiled(entry.policy_set);
  if (set === null) return;
  const { action } = history;
  for (const use of recomputeLimitUses(set, request, entry, parseEntryTime(entry.at), history)) {
    if (use.until + USE_RETENTION_MS <= totals.latest) continue;
    const place = { ...limitUseKey(use), action_id: action.id.slice(0, -1) };
    const rows = await copying.read("limit_uses", place, IDS_PER_PREFIX);
    const isStored = rows.some((row) => row["action_id"] === action.id && row["subject"] === use.subject);
    if (!isStored) fault(`its use of the limit "${use.limit}" of "${use.policy}" is not in the store`);
  }
}

/**
 * Checks that the action is in every history to which it belongs. `audit-rows.ts` checks that the histories contain no
 * other actions.
 */
async function checkPlaces(
  { store, totals, compiled }: ActionsAudit,
  request: ActionRequest,
  history: ActionHistory,
  entry: DecisionEntry | RedecisionEntry,
  fault: ReportFault,
): Promise<void> {
  const { copying } = store;
  const set = copying === undefined ? null : await compiled(entry.policy_set);
  if (copying === undefined || set === null) return;
  const { id } = history.action;
  const at = findHistoryTime(history);
  for (const place of recomputeMemberships(set, request, entry, parseEntryTime(entry.at), at)) {
    if (place.until + USE_RETENTION_MS <= totals.latest) continue;
    const { policy, basis, subject } = place;
    const before = { policy, basis, subject, at, action_id: id.slice(0, -1) };
    const rows = await copying.read("past_actions", before, IDS_PER_PREFIX);
    if (!rows.some((row) => row["action_id"] === id && row["subject"] === subject))
      fault(`it is missing in the history of the policy "${policy}"`);
  }
}

function limitUseKey({ policy, limit, subject, at }: LimitUse) {
  return { policy, limit_name: limit, subject, at };
}

function nullIfThrows<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
