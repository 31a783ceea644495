/**
 * The text that a search of actions reads. The API and the storages share these definitions, so that a storage never
 * omits an action that the search would find.
 */
import { CHANGED_BY_POLICIES, decodeEdit } from "../../domain/edited-request.ts";
import { decodeQuestions } from "../../domain/questions.ts";
import type { ActionRow, ApprovalRow } from "./actions.ts";

/** Columns whose whole text is compared. */
export const SEARCHED_COLUMNS = ["tool", "operation", "agent_id", "policy", "rule", "reason"] as const;

type SearchedRow = Pick<ActionRow, (typeof SEARCHED_COLUMNS)[number] | "request" | "effective" | "questions">;

/** What a word is compared with. */
export interface SearchedText {
  /** Names, the reason, questions and comments, separated by whitespace. No word contains whitespace. */
  plain: string;
  /** The request and its change as JSON. Search it for a word as JSON escapes it. */
  json: string;
}

/**
 * Returns the names, the reason, the request, its change, the questions and the comments of votes. Contains no salt: a
 * search must not reveal the salts that protect commitments after an erasure.
 * @example
 * const isMatch = searchedText(row, await storage.approvals(row.id)).plain.includes("refund");
 */
export function searchedText(row: SearchedRow, votes: readonly Pick<ApprovalRow, "reason">[]): SearchedText {
  const { edit, questions } = decodeTexts(row);
  const texts = [
    ...SEARCHED_COLUMNS.map((column) => row[column]),
    edit?.comment,
    ...questions.flatMap(({ question, answer }) => [question.text, answer?.text]),
    ...votes.map(({ reason }) => reason),
  ].filter((text) => text != null);
  return {
    plain: texts.join("\n"),
    json: [row.request, edit === null ? "" : JSON.stringify(edit.request)].join("\n"),
  };
}

/**
 * Returns the principals whose names a search compares: voters, the users they voted for, the approver who changed the
 * request, and those who asked questions.
 * @example
 * searchedPrincipals(row, await storage.approvals(row.id)); // ["user:0193…"]
 */
export function searchedPrincipals(
  row: Pick<ActionRow, "effective" | "questions">,
  votes: readonly Pick<ApprovalRow, "principal" | "on_behalf_of">[],
): string[] {
  const { edit, questions } = decodeTexts(row);
  return [
    ...votes.flatMap(({ principal, on_behalf_of }) => [principal, on_behalf_of]),
    edit?.by,
    ...questions.map(({ asked_by }) => asked_by),
  ].filter((principal) => principal != null);
}

/**
 * Returns true if the action's entries might contain a comment that its rows lack: one of a lifted rejection, or of a
 * vote that a later change of the request, the plan or the facts made void.
 * @example
 * if (hasEarlierComments(row)) entries = await storage.entriesOfAction(row.id);
 */
export function hasEarlierComments(row: ActionRow): boolean {
  const { edit } = decodeTexts(row);
  const wasLifted = row.status === "denied" && row.rejection_until === null;
  const wasEdited = edit !== null && edit.by !== CHANGED_BY_POLICIES;
  const wasChanged = wasEdited || row.plan_id !== null || row.reason_code === "MORE_APPROVALS_NEEDED";
  return row.quorum !== null && (wasLifted || wasChanged);
}

/** Returns the texts that people added to the row. Ignores altered columns, because the audit reports them. */
function decodeTexts({ effective, questions }: Pick<ActionRow, "effective" | "questions">) {
  return {
    edit: nullIfUnreadable(() => decodeEdit(effective)),
    questions: nullIfUnreadable(() => decodeQuestions(questions)) ?? [],
  };
}

function nullIfUnreadable<T>(decode: () => T): T | null {
  try {
    return decode();
  } catch {
    return null;
  }
}
