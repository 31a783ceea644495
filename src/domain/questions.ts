/**
 * Questions that approvers ask an agent about its pending action, and the answers. Entries contain commitments to the
 * questions and answers, each with its own salt. The action's row stores the text until erasure.
 */
import { canonicalText } from "./canonical.ts";
import { sha256Hex, utf8 } from "./hash.ts";
import type { JsonValue } from "./json.ts";
import { commitSalted } from "./salted-commitment.ts";

/** A question as the ledger records it. Its text is stored as commitments. */
export interface RecordedQuestion {
  /** Principal of the approver. */
  asked_by: string;
  /** Time of the question. Milliseconds. */
  asked_at: number;
  question: string;
  /** Time of the answer; null until the agent answers. Milliseconds. */
  answered_at: number | null;
  answer: string | null;
}

interface SaltedText {
  /** 32 random bytes in hex. */
  salt: string;
  text: string;
}

/** A question as the action's row stores it. */
export interface StoredQuestion extends Omit<RecordedQuestion, "question" | "answer"> {
  question: SaltedText;
  answer: SaltedText | null;
}

/**
 * Returns SHA-256(salt ‖ SHA-256(canonical `{text}`)) in hex.
 * @example
 * commitQuestionText({ salt, text: "Why?" });
 */
export function commitQuestionText({ salt, text }: SaltedText): string {
  return commitSalted({ salt, text });
}

/** Encodes the questions for the row; null if there are no questions. */
export function encodeQuestions(questions: readonly StoredQuestion[]): string | null {
  return questions.length === 0 ? null : canonicalText(questions as unknown as JsonValue);
}

/** Decodes the row's string. Throws SyntaxError if the service did not write it. */
export function decodeQuestions(text: string | null): StoredQuestion[] {
  if (text === null) return [];
  const questions = JSON.parse(text) as StoredQuestion[];
  const isText = (value: SaltedText | null | undefined): boolean =>
    typeof value?.salt === "string" && typeof value.text === "string";
  const isWhole =
    Array.isArray(questions) &&
    questions.every((question) => isText(question.question) && (question.answer === null || isText(question.answer)));
  if (!isWhole) throw new SyntaxError("the row's questions are not what the service writes");
  return questions;
}

/**
 * Returns the commitments to the row's questions and answers. Throws SyntaxError if the service did not write the
 * string.
 */
export function commitQuestions(text: string | null): RecordedQuestion[] {
  return decodeQuestions(text).map((item) => ({
    ...item,
    question: commitQuestionText(item.question),
    answer: item.answer === null ? null : commitQuestionText(item.answer),
  }));
}

/** Returns true if the row's string contains exactly the questions and answers that the entries commit to. */
export function matchesRecordedQuestions(recorded: readonly RecordedQuestion[], text: string | null): boolean {
  try {
    return encodeQuestions(decodeQuestions(text)) === text && sameJson(commitQuestions(text), recorded);
  } catch {
    return false;
  }
}

/**
 * Returns the digest of the questions and answers, which votes contain: SHA-256 of `assent-questions/1`, a line feed
 * and the canonical JSON of `[[question, answer], …]` with the commitments. Null if there are no questions.
 * @example
 * questionsDigest([]); // null
 */
export function questionsDigest(questions: readonly Pick<RecordedQuestion, "question" | "answer">[]): string | null {
  if (questions.length === 0) return null;
  const pairs = questions.map(({ question, answer }) => [question, answer]);
  return sha256Hex(utf8(`assent-questions/1\n${canonicalText(pairs)}`));
}

function sameJson(a: unknown, b: unknown): boolean {
  return canonicalText(a as JsonValue) === canonicalText(b as JsonValue);
}
