/**
 * Compares the content of an action's row with the commitments in the action's entries. The ledger does not contain the
 * content, so that it can be erased.
 */
import type { ActionHistory } from "./action-history.ts";
import type { ActionRequest } from "./actions.ts";
import { canonicalText } from "./canonical.ts";
import { matchesRecordedEdit } from "./edited-request.ts";
import { matchesRejectionDigests } from "./erased-rejection.ts";
import { matchesRecordedQuestions } from "./questions.ts";
import { commitDigest, commitResult, encodeRequest } from "./request.ts";
import { matchesCommitment } from "./salted-commitment.ts";
import { factsMatchCommitments } from "./salted-facts.ts";

/** The columns to which an action's entries contain commitments. `past` is the data that its decisions read. */
interface ContentColumns {
  request: string;
  request_hash: string;
  salt: string;
  effective: string | null;
  effective_hash: string | null;
  meta: string | null;
  questions: string | null;
  past: string | null;
  result: string | null;
}

/** A comparison of content. `request` compares the request with its hash; `request_hash` compares the hash with the entries. */
export type ContentPart = "request" | "request_hash" | "effective" | "meta" | "questions" | "past" | "result";

const PART_MATCHES: Record<ContentPart, (row: ContentColumns, history: ActionHistory) => boolean> = {
  request: (row) => hasRecordedRequest(row),
  request_hash: ({ salt, request_hash }, { first }) => commitDigest(salt, request_hash) === first.commitment,
  effective: (row, { edit }) => matchesRecordedEdit(edit, row),
  meta: ({ meta }, { first }) => matchesCommitment(first.meta, meta),
  questions: (row, { questions }) => matchesRecordedQuestions(questions, row.questions),
  past: (row, { past }) => factsMatchCommitments(past, row.past),
  result: (row, { result }) => hasRecordedResult(row, result),
};

export const CONTENT_PARTS = Object.keys(PART_MATCHES) as ContentPart[];

/**
 * Returns the parts that differ from the entries. Skips erased parts. For an erased action, compares only the digests that
 * remain of a rejected request.
 */
export function findAlteredContent(
  row: ContentColumns,
  history: ActionHistory,
  parts: readonly ContentPart[] = CONTENT_PARTS,
): ContentPart[] {
  if (history.action.erased_at !== null) return matchesRejectionDigests(history.rejected, row) ? [] : ["request_hash"];
  const erased: readonly string[] = history.erasedParts;
  return parts.filter((part) => !erased.includes(part) && !isTrue(() => PART_MATCHES[part](row, history)));
}

/** Returns true if the stored request matches its request hash. */
export function hasRecordedRequest({
  request,
  request_hash,
}: Pick<ContentColumns, "request" | "request_hash">): boolean {
  return isTrue(() => encodeRequest(JSON.parse(request) as ActionRequest).hash === request_hash);
}

function hasRecordedResult({ result, salt }: ContentColumns, commitment: string | null): boolean {
  if (commitment === null || result === null) return commitment === null && result === null;
  const value = JSON.parse(result) as Parameters<typeof commitResult>[1];
  return commitResult(salt, value) === commitment && canonicalText(value) === result;
}

/** Runs a check. Returns false if it throws: content that the service wrote can be parsed, so an error shows a change. */
function isTrue(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}
