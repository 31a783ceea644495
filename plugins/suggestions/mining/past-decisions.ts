/**
 * Reads past decisions with their votes. Runs on the main thread, which reads one page for each request of the thread
 * for policy trials.
 */
import {
  type ActionEntry,
  type ActionRequest,
  commitDigest,
  type CoreHost,
  type DecisionEntry,
  decodeEntry,
  encodeRequest,
  equalBytes,
  hashLeaf,
  parseEntryTime,
} from "../../../src/core.ts";
import { type EntryBody, type Fold, PersistentMap } from "../../../src/plugin.ts";
import type { ActionRow, DecisionInput, EntryRow, StorageReader } from "../../../src/storage/index.ts";
import type { PastDecision, PastDecisionPage, PastDecisionQuery } from "./report.ts";

const PAGE_SIZE = 100;
/** Maximum number of characters of a request. Longer requests are skipped. */
const MAX_REQUEST = 16_384;

type FlaggedActions = PersistentMap<string, true>;

/** The actions that someone flagged as uses of grants and of suggested rules. */
export const flaggedActionState: Fold<FlaggedActions> = {
  name: "flagged_actions",
  initial: PersistentMap.of(),
  on: { grant: addFlaggedAction, suggested_rule: addFlaggedAction },
};

function addFlaggedAction(flagged: FlaggedActions, entry: EntryBody): FlaggedActions {
  const { cause, related_action: action } = entry as { cause?: string; related_action?: string | null };
  return cause === "flag" && typeof action === "string" ? flagged.with(action, true) : flagged;
}

export async function readPastDecisions(
  host: Pick<CoreHost, "storage" | "state">,
  { since, until, limit, before }: PastDecisionQuery,
): Promise<PastDecisionPage> {
  const { storage } = host;
  const size = Math.min(PAGE_SIZE, limit);
  const span = await storage.decisionSpan(since, until);
  if (span === null) return { decisions: [], read: 0, skipped: 0, next: null };
  const inputs = await storage.decisions({
    visibility: { all: true },
    from_seq: span.first,
    before_seq: before ?? span.last + 1,
    since,
    until,
    limit: size,
  });
  const rows = new Map(
    (await storage.actionsById(inputs.map(({ action_id }) => action_id))).map((row) => [row.id, row]),
  );
  const flagged = await host.state(flaggedActionState);
  const decisions: PastDecision[] = [];
  for (const input of inputs) {
    const decision = await readDecision(storage, input, rows.get(input.action_id), flagged);
    if (decision !== null) decisions.push(decision);
  }
  const last = inputs.at(-1);
  return {
    decisions,
    read: inputs.length,
    skipped: inputs.length - decisions.length,
    next: inputs.length < size || last === undefined ? null : last.seq,
  };
}

/** Returns a past decision; null if its request was erased, is too large, or differs from the ledger. */
async function readDecision(
  reader: Pick<StorageReader, "entriesOfAction">,
  { bytes, request, past, action_id }: DecisionInput,
  row: ActionRow | undefined,
  flagged: FlaggedActions,
): Promise<PastDecision | null> {
  if (row === undefined || request === "" || request.length > MAX_REQUEST) return null;
  try {
    const entry = decodeEntry<DecisionEntry>(bytes);
    const { hash } = encodeRequest(JSON.parse(request) as ActionRequest);
    if (commitDigest(row.salt, hash) !== entry.commitment) return null;
    const requiresApproval = entry.decision.effect === "require_approval";
    const entries = requiresApproval ? await reader.entriesOfAction(action_id) : [];
    const { agent_id, key_id } = entry.submitted_by;
    return {
      action_id,
      source: agent_id ?? key_id,
      at: parseEntryTime(entry.at),
      request,
      past,
      facts: entry.facts,
      effect: entry.decision.effect,
      ...readAnswers(entries, flagged.get(action_id) === true),
    };
  } catch {
    return null;
  }
}

/** Reads the votes on an action and its outcome. Throws if an entry was altered. */
function readAnswers(
  rows: readonly EntryRow[],
  isFlagged: boolean,
): Pick<PastDecision, "verdict" | "votes" | "outcome"> {
  const votes: PastDecision["votes"] = [];
  let outcome: PastDecision["outcome"] = "not_run";
  let isRejected = isFlagged;
  let isApproved = false;
  for (const { bytes, leaf_hash, type } of rows) {
    if (type.includes(":")) continue;
    if (!equalBytes(hashLeaf(bytes), leaf_hash)) throw new RangeError("an entry was altered");
    const entry = decodeEntry<ActionEntry>(bytes);
    if (entry.type === "approval" && entry.by !== null) {
      const { verdict, by, self_approval, break_glass } = entry;
      if (verdict === "deny") isRejected = true;
      // A cancelled action might have been approved by mistake: an approver withdraws an approval by cancelling it.
      if (verdict === "cancelled") isApproved = false;
      if (verdict === "approve") {
        votes.push({ by: by.principal, at: parseEntryTime(entry.at), exceptional: self_approval || break_glass });
        isApproved ||= entry.status === "approved";
      }
    }
    if (entry.type === "review" && entry.answer === "deny") isRejected = true;
    // A changed request was not approved as it was submitted.
    if (entry.type === "redecision" && entry.edit !== null) isRejected = true;
    if (entry.type === "execution") {
      const { status } = entry;
      outcome = status === "succeeded" || status === "failed" ? status : "unknown";
    }
  }
  return { votes, outcome, verdict: isRejected ? "rejected" : isApproved ? "approved" : "unanswered" };
}
