/**
 * Finds rejections by people and denials by machine reviewers that currently deny duplicate requests.
 * `lift-rejection.ts` lifts a rejection early.
 */
import {
  type CoreHost,
  type DecisionEntry,
  decodeEntry,
  findDeniedBy,
  parseRfc3339,
  principalOfReviewer,
  readPrincipalNames,
  type ReviewEntry,
  type RejectionFact,
  toSingleLine,
  type Users,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import {
  type ActionRow,
  type ApprovalRow,
  type EntryRow,
  type StorageReader,
  nullIfCorrupt,
} from "../../src/storage/index.ts";
import { verifyAgainstLedger } from "./verify-record.ts";
import type { Rejection } from "./rejection-schemas.ts";

/** Maximum length of the voter's comment in the reason of a later decision. The vote's entry has the whole comment. */
const MAX_COMMENT = 500;
const MAX_NAME = 200;

type Reader = Pick<StorageReader, "rejectedAction" | "entriesOfAction" | "key">;

/**
 * Returns the recorded rejection that denies this request now; null if there is none. The rejected action was submitted
 * with this request, or changed to it by an approver or the policies. Makes at most three indexed reads. Throws
 * RECORD_ALTERED if the rejected action differs from the ledger.
 * @param users the users of the same moment
 */
export async function findActiveRejection(
  host: Pick<CoreHost, "log">,
  reader: Reader,
  requestHash: string,
  now: number,
  users: Users,
): Promise<RejectionFact | null> {
  const row = await reader.rejectedAction(requestHash, now);
  if (row === null || row.rejection_until === null) return null;
  const { rejection } = await verifyAgainstLedger(host, reader, row);
  if (rejection === null) throw new Error(`the action ${row.id} has a rejection_until without a rejection`);
  const { approver } = rejection;
  const names = await readPrincipalNames(reader, users, [approver]);
  return {
    action_id: row.id,
    approver,
    approver_name: toSingleLine(names[approver] ?? "", MAX_NAME) || null,
    comment: commentOf(rejection.comment),
    at: rejection.at,
    until: toRfc3339(row.rejection_until),
  };
}

const commentOf = (text: string | null): string | null => toSingleLine(text ?? "", MAX_COMMENT) || null;

/**
 * Returns the rejection that ended this action: a person's, a machine reviewer's, or an earlier rejection of the same
 * request. Null if there is none.
 */
export async function readRejection(
  reader: Pick<StorageReader, "entriesOfAction">,
  row: ActionRow,
  votes: readonly ApprovalRow[],
  now: number,
): Promise<Rejection | null> {
  const by = findDeniedBy(row);
  if (by === "earlier_rejection") {
    const [first] = (await nullIfCorrupt(reader.entriesOfAction(row.id))) ?? [];
    const { rejection = null } = first === undefined ? {} : decodeEntry<DecisionEntry>(first.bytes).facts;
    if (rejection === null) return null;
    const { action_id, approver, comment, at, until } = rejection;
    const holds = (parseRfc3339(until) ?? 0) > now;
    return { action_id, approver, reason: comment, rejected_at: at, holds_until: holds ? until : null };
  }
  if (by === "reviewer") {
    const review = decodeReviewDenial((await nullIfCorrupt(reader.entriesOfAction(row.id))) ?? []);
    if (review === null) return null;
    return {
      action_id: row.id,
      approver: principalOfReviewer(review.reviewer),
      reason: commentOf(review.comment),
      rejected_at: review.at,
      holds_until: holdsUntil(row, now),
    };
  }
  const vote = by === "person" ? votes.find(({ approve }) => !approve) : undefined;
  if (vote === undefined) return null;
  return {
    action_id: row.id,
    approver: vote.principal,
    reason: commentOf(vote.reason),
    rejected_at: toRfc3339(vote.created_at),
    holds_until: holdsUntil(row, now),
  };
}

function holdsUntil({ rejection_until: until }: ActionRow, now: number): string | null {
  return until === null || until <= now ? null : toRfc3339(until);
}

function decodeReviewDenial(entries: readonly EntryRow[]): ReviewEntry | null {
  const reviews = entries.filter(({ type }) => type === "review").map(({ bytes }) => decodeEntry<ReviewEntry>(bytes));
  return reviews.find(({ status }) => status === "denied") ?? null;
}
