/**
 * Applies the answer of a machine reviewer to a pending action: a compare-and-set in the transaction that records the
 * entry. Only the first recorded answer of a reviewer to a request counts, so calling a reviewer twice is harmless.
 */
import {
  actionEntryFields,
  commitDigest,
  type CoreHost,
  findOutstandingReviewers,
  type LedgerTransaction,
  MAX_REVIEW_REASON,
  rejectionHoldMs,
  reviewsApprove,
  toSingleLine,
} from "../../src/core.ts";
import { Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  approvalPeriodMs,
  BarredError,
  findPinChanges,
  isOverdue,
  recordDenial,
  type Redecision,
  reevaluateAction,
  releaseLimitUses,
  requireMoreApprovals,
  type VerifiedHistory,
  verifyAgainstLedger,
} from "../actions/api.ts";
import type { ReviewOutcome } from "./calls.ts";

/** An outcome to record. */
interface FinishedReview {
  actionId: string;
  reviewer: string;
  /** Sequence number of the entry that made the action pending. */
  asked: number;
  /** SHA-256 of the request that the reviewer received, hex. Null if the reviewer was not called. */
  digest: string | null;
  outcome: ReviewOutcome;
}

/**
 * Records the outcome. Does nothing if this request is no longer pending, or if the reviewer has already answered it.
 * Rejects with RECORD_ALTERED if the action in the store differs from the ledger.
 */
export function recordReview(host: CoreHost, review: FinishedReview): Promise<void> {
  return host.ledger.transact(async (tx) => {
    const row = await tx.action(review.actionId);
    if (row === null || row.erased_at !== null || row.status !== "pending_approval" || isOverdue(row, tx.now)) return;
    const history = await verifyAgainstLedger(host, tx, row, await tx.approvals(row.id));
    const { asked } = history;
    if (asked === null || asked.seq !== review.asked) return;
    const isAwaited = findOutstandingReviewers(asked.reviewers, asked.reviews).some(
      ({ name }) => name === review.reviewer,
    );
    if (!isAwaited) return;
    const reviews = [...asked.reviews, { reviewer: review.reviewer, answer: review.outcome.answer }];
    const outstanding = findOutstandingReviewers(asked.reviewers, reviews).length;
    if (review.outcome.answer === "deny") return applyDenial(tx, row, history, { ...review, outstanding });
    // Once a person has asked the agent a question, a person decides, so no machine reviewer approves instead.
    const mayApprove = history.questions.length === 0 && reviewsApprove(asked.reviewers, reviews);
    const redecision = mayApprove ? await redecide(host, tx, row, history) : null;
    const arePinsSame = redecision === null || findPinChanges(redecision, history, row).length === 0;
    if (redecision !== null && arePinsSame && isApprovedAgain(redecision, reviews))
      return applyApproval(tx, row, history, { ...review, outstanding }, redecision);
    const reviewed = recordEntry(tx, row, { ...review, outstanding }, { status: "pending_approval" });
    if (redecision?.decision.effect === "deny")
      await recordDenial(tx, reviewed, redecision, { occasion: "review", by: null });
    else if (redecision !== null && !arePinsSame)
      await requireMoreApprovals(tx, reviewed, redecision, { occasion: "review", by: null }, history);
  });
}

type CountedReview = FinishedReview & { outstanding: number };

/**
 * Decides with the current policies, agent and key. Returns null while a stop applies or a fact is unavailable; people
 * can still vote on the action.
 */
async function redecide(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  { basis }: VerifiedHistory,
): Promise<Redecision | null> {
  try {
    return await reevaluateAction(host, tx, row, basis);
  } catch (error) {
    if (error instanceof BarredError) return null;
    if (error instanceof Refusal && ["FACTS_UNAVAILABLE", "OVERLOADED"].includes(error.code)) return null;
    throw error;
  }
}

/** Returns true if the current policies allow the action, or still let these reviewers approve it. */
function isApprovedAgain(
  { decision: { effect, approval } }: Redecision,
  reviews: Parameters<typeof reviewsApprove>[1],
): boolean {
  if (effect === "deny") return false;
  return approval === null || reviewsApprove(approval.reviewers ?? [], reviews);
}

async function applyDenial(
  tx: LedgerTransaction,
  row: ActionRow,
  { terms }: VerifiedHistory,
  review: CountedReview,
): Promise<void> {
  const holdMs = rejectionHoldMs(terms);
  const rejection_until = holdMs > 0 ? tx.now + holdMs : null;
  recordEntry(tx, row, review, { status: "denied", rejection_until });
  await releaseLimitUses(tx, row);
}

function applyApproval(
  tx: LedgerTransaction,
  row: ActionRow,
  { terms }: VerifiedHistory,
  review: CountedReview,
  { decision }: Redecision,
): void {
  // Use the shorter approval period of the decision and the current policies.
  const validForMs = approvalPeriodMs([terms, decision.approval]);
  recordEntry(tx, row, review, { status: "approved", approved_until: tx.now + validForMs });
}

/** Records the answer. Returns the action after it. */
function recordEntry(
  tx: LedgerTransaction,
  row: ActionRow,
  { reviewer, asked, digest, outcome, outstanding }: CountedReview,
  effect: {
    status: "pending_approval" | "approved" | "denied";
    approved_until?: number | null;
    rejection_until?: number | null;
  },
): ActionRow {
  const { status, approved_until = null, rejection_until = null } = effect;
  return tx.recordChange(row, null, {
    type: "review",
    v: 1,
    ...actionEntryFields(row, tx.now),
    reviewer,
    version: outcome.version,
    asked,
    input: digest === null ? null : commitDigest(row.salt, digest),
    answer: outcome.answer,
    fault: outcome.fault,
    comment: toSingleLine(outcome.reason ?? "", MAX_REVIEW_REASON) || null,
    latency_ms: outcome.latencyMs,
    outstanding,
    status,
    approved_until: approved_until === null ? null : toRfc3339(approved_until),
    rejection_until: rejection_until === null ? null : toRfc3339(rejection_until),
  }).row;
}
