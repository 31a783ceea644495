/**
 * Reads past decisions with their votes, for suggestions. Runs on the main thread, which reads one page for each
 * request of the thread for policy trials.
 */
import type { PastDecision, PastDecisionPage, PastDecisionReader } from "../contract/suggestions.ts";
import type { ActionRow, DecisionInput, EntryRow, StorageReader } from "../contract/storage.ts";
import type { ActionEntry } from "../domain/action-history.ts";
import { parseEntryTime } from "../domain/time.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { decodeEntry, type DecisionEntry } from "../domain/entries.ts";
import type { Grants } from "../domain/grants.ts";
import { equalBytes } from "../domain/hash.ts";
import { hashLeaf } from "../domain/merkle.ts";
import type { SuggestedRules } from "../domain/suggested-rules.ts";
import { commitDigest, encodeRequest } from "../domain/request.ts";

const PAGE = 100;
/** Maximum number of characters of a request. Longer requests are skipped. */
const MAX_REQUEST = 16_384;

type Reader = Pick<StorageReader, "decisionSpan" | "decisions" | "actionsById" | "entriesOfAction">;

/** Returns the actions that someone flagged as uses of grants and of suggested rules. */
export function findFlaggedActions({ all }: Grants, rules: SuggestedRules): ReadonlySet<string> {
  const flagged = new Set<string>();
  for (const { ended } of all.values())
    if (ended?.cause === "flag" && ended.related_action !== null) flagged.add(ended.related_action);
  for (const { flags } of rules.values()) for (const id of flags) flagged.add(id);
  return flagged;
}

/** @param flagged a function that returns the actions that someone flagged */
export function createPastDecisionReader(
  reader: Reader,
  flagged: () => Promise<ReadonlySet<string>>,
): PastDecisionReader {
  return async ({ since, until, limit }, before) => {
    const size = Math.min(PAGE, limit);
    const span = await reader.decisionSpan(since, until);
    const empty: PastDecisionPage = { decisions: [], read: 0, skipped: 0, next: null };
    if (span === null) return empty;
    const inputs = await reader.decisions({
      visibility: { all: true },
      from_seq: span.first,
      before_seq: before ?? span.last + 1,
      since,
      until,
      limit: size,
    });
    const rows = new Map(
      (await reader.actionsById(inputs.map(({ action_id }) => action_id))).map((row) => [row.id, row]),
    );
    const flags = await flagged();
    const decisions: PastDecision[] = [];
    for (const input of inputs) {
      const decision = await readDecision(reader, input, rows.get(input.action_id), flags);
      if (decision !== null) decisions.push(decision);
    }
    const last = inputs.at(-1);
    return {
      decisions,
      read: inputs.length,
      skipped: inputs.length - decisions.length,
      next: inputs.length < size || last === undefined ? null : last.seq,
    };
  };
}

/** Returns a past decision; null if its request was erased, is too large, or differs from the ledger. */
async function readDecision(
  reader: Reader,
  { bytes, request, past, action_id }: DecisionInput,
  row: ActionRow | undefined,
  flags: ReadonlySet<string>,
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
      ...readAnswers(entries, flags.has(action_id)),
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
      if (verdict === "approve") {
        votes.push({ by: by.principal, at: parseEntryTime(entry.at), exceptional: self_approval || break_glass });
        isApproved ||= entry.status === "approved";
      }
    }
    if (entry.type === "review" && entry.answer === "deny") isRejected = true;
    // An approver who changes a request has not approved it as it was submitted.
    if (entry.type === "redecision" && entry.edit !== null) isRejected = true;
    if (entry.type === "execution") {
      const { status } = entry;
      outcome = status === "succeeded" || status === "failed" ? status : "unknown";
    }
  }
  return { votes, outcome, verdict: isRejected ? "rejected" : isApproved ? "approved" : "unanswered" };
}
