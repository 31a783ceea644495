/**
 * Finds rejections by people and denials by machine reviewers that currently deny duplicate requests.
 * `lift-rejection.ts` lifts a rejection early.
 */
import {
  type CoreHost,
  type DecisionEntry,
  decodeEntry,
  effectiveRequestHash,
  findDeniedBy,
  parseRfc3339,
  type ReviewEntry,
  type RejectionFact,
  toHex,
  toSingleLine,
  type Users,
  utf8,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import {
  type ActionRow,
  type ApprovalRow,
  type EntryRow,
  type StorageReader,
  nullIfCorrupt,
} from "../../src/storage/index.ts";
import { newSalt } from "./salt.ts";
import { readRecordedName } from "./recorded-name.ts";
import { principalOfReviewer, verifyAgainstLedger } from "./verify-record.ts";
import type { Rejection } from "./rejection-schemas.ts";

/** Maximum length of the voter's comment in the reason of a later decision. The vote's entry has the whole comment. */
const MAX_COMMENT = 500;

type Reader = Pick<StorageReader, "rejectedAction" | "entriesOfAction" | "key">;

/**
 * Returns the recorded rejection that denies this request now; null if there is none. The rejected action was submitted
 * with this request, or changed to it by an approver or the policies. Its content may have been erased. Throws
 * RECORD_ALTERED if the rejected action differs from the ledger.
 * @param users the users of the same moment
 */
export async function findActiveRejection(
  host: Pick<CoreHost, "log" | "vault">,
  reader: Reader,
  requestHash: string,
  now: number,
  users: Users,
): Promise<RejectionFact | null> {
  const hashes = [requestHash, keyedDigest(host, requestHash)];
  const found = await Promise.all(hashes.map((hash) => reader.rejectedAction(hash, now)));
  const row = found.reduce((a, b) => ((b?.rejection_until ?? 0) > (a?.rejection_until ?? 0) ? b : a));
  if (row === null || row.rejection_until === null) return null;
  const { rejection } = await verifyAgainstLedger(host, reader, row);
  if (rejection === null) throw new Error(`the action ${row.id} has a rejection_until without a rejection`);
  const { approver } = rejection;
  return {
    action_id: row.id,
    approver,
    approver_name: await readRecordedName(reader, users, approver),
    comment: commentOf(rejection.comment),
    at: rejection.at,
    until: toRfc3339(row.rejection_until),
  };
}

/** Returns the digest of a request's hash that an erased action's row keeps. Its key is the service's secret. */
const keyedDigest = ({ vault }: Pick<CoreHost, "vault">, requestHash: string): string =>
  toHex(vault.mac("actions/erased-rejection", utf8(requestHash)));

/**
 * Returns the columns that the row retains after its erasure, so that its rejection still denies the same request; null
 * if no rejection of the action is in force.
 */
export function digestRejection(
  host: Pick<CoreHost, "vault">,
  row: ActionRow,
  now: number,
): Pick<ActionRow, "request_hash" | "effective_hash" | "salt"> | null {
  if (row.rejection_until === null || row.rejection_until <= now) return null;
  return {
    request_hash: keyedDigest(host, row.request_hash),
    effective_hash: row.effective === null ? null : keyedDigest(host, effectiveRequestHash(row)),
    salt: newSalt(),
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
