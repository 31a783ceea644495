/**
 * Machine reviewers: programs that see a pending action as its approvers do. People are notified when a reviewer
 * escalates or fails, when all reviewers have answered, or after a timeout. A reviewer is not a person: it has no vote,
 * and it can approve only if every rule that requires approval permits that. Pure, so that the audit computes the same
 * result.
 */
import { clipText } from "./text.ts";

/** Answers of a reviewer. `approve`: no objection. `escalate`: a person has to decide. */
export const REVIEW_ANSWERS = ["approve", "deny", "escalate"] as const;
export type ReviewAnswer = (typeof REVIEW_ANSWERS)[number];

/** Pattern of the names of reviewers. */
export const REVIEWER_NAME_PATTERN = "^[a-z0-9][a-z0-9._-]{0,63}$";

/** Reasons why there is no answer. `not_configured`: the service has no reviewer of this name. */
export const REVIEWER_FAILURES = ["timeout", "error", "malformed", "not_configured"] as const;
export type ReviewFault = (typeof REVIEWER_FAILURES)[number];

/** A reviewer in a decision. */
export interface RequiredReviewer {
  /** Whether the reviewer's approval can replace a person's. */
  may_approve: boolean;
  name: string;
}

/** A reviewer's answer to a request, as recorded in its entry. */
interface RecordedReview {
  reviewer: string;
  /** The answer; null if the reviewer gave no valid answer. */
  answer: ReviewAnswer | null;
}

/** Maximum length of a recorded reason. Longer reasons are shortened. */
export const MAX_REVIEW_REASON = 500;

/** Longest delay of notifications to people while reviewers have not answered. Milliseconds. */
export const REVIEW_DEADLINE_MS = 60_000;

/**
 * Combines the reviewers of several rules. A reviewer may approve only if every rule permits it.
 * @param rules the reviewers of each rule that requires approval
 * @param approvable whether reviewers may approve this action at all
 */
export function combineReviewers(
  rules: readonly (readonly RequiredReviewer[])[],
  approvable: boolean,
): RequiredReviewer[] {
  const names = [...new Set(rules.flatMap((rule) => rule.map(({ name }) => name)))].sort();
  const mayApprove = (name: string): boolean =>
    approvable && rules.every((rule) => rule.some((each) => each.name === name && each.may_approve));
  return names.map((name) => ({ may_approve: mayApprove(name), name }));
}

/** Returns the reviewers that have not answered. */
export function findOutstandingReviewers(
  required: readonly RequiredReviewer[],
  reviews: readonly RecordedReview[],
): RequiredReviewer[] {
  return required.filter(({ name }) => !reviews.some(({ reviewer }) => reviewer === name));
}

/** Returns true if every reviewer answered `approve`, and at least one of them may approve instead of a person. */
export function reviewsApprove(required: readonly RequiredReviewer[], reviews: readonly RecordedReview[]): boolean {
  const approves = (name: string): boolean =>
    reviews.some(({ reviewer, answer }) => reviewer === name && answer === "approve");
  return required.some(({ may_approve }) => may_approve) && required.every(({ name }) => approves(name));
}

/** Returns the reason of an action that a reviewer denied. */
export function describeReviewDenial(reviewer: string, comment: string | null): string {
  const words = comment === null ? "" : `: ${comment}`;
  return clipText(`denied by the reviewer "${reviewer}"${words}`, MAX_REVIEW_REASON);
}
