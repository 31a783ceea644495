/** Questions of approvers to the agent of a pending action, and its answers. Neither changes the action's status. */
import {
  actionEntryFields,
  commitQuestionText,
  confirmCredential,
  type CoreHost,
  decodeQuestions,
  encodeQuestions,
  type LedgerTransaction,
  type StoredQuestion,
  toActor,
} from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import {
  assertNotSelf,
  findSelfApproval,
  isAgentOfAction,
  MAX_QUESTIONS,
  newSalt,
  pendingAction,
} from "../actions/api.ts";
import { ERRORS } from "./schemas.ts";

/**
 * Once an action has this many questions, the person behind the agent can no longer ask. The rest are reserved for
 * other approvers.
 */
const MAX_QUESTIONS_BEFORE_OWNER = 2;

/**
 * Asks the agent a question. If the approver repeats a question that has no answer yet, changes nothing and returns the
 * action. Throws TOO_MANY_QUESTIONS above MAX_QUESTIONS; for the person behind the agent, above
 * MAX_QUESTIONS_BEFORE_OWNER.
 */
export function askQuestion(host: CoreHost, credential: Credential, id: string, text: string): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "approvals:decide");
    const row = await pendingAction(host, tx, id, caller);
    const self = findSelfApproval(host, row, caller);
    // The person behind the agent can ask questions. The agent's own keys cannot, because they could use up the maximum
    // number of questions.
    if (self === "same_key" || self === "same_agent") assertNotSelf(self);
    const questions = decodeQuestions(row.questions);
    const isOpen = (one: StoredQuestion): boolean =>
      one.answer === null && one.asked_by === caller.principal && one.question.text === text;
    if (questions.some(isOpen)) return row;
    if (questions.length >= MAX_QUESTIONS)
      throw new Refusal(
        ERRORS.tooMany,
        `${MAX_QUESTIONS} questions were asked about the action, which is the limit; vote on it`,
      );
    if (self !== null && questions.length >= MAX_QUESTIONS_BEFORE_OWNER)
      throw new Refusal(
        ERRORS.tooMany,
        `the other ${MAX_QUESTIONS - MAX_QUESTIONS_BEFORE_OWNER} questions are reserved for approvers other than the person behind the agent`,
      );
    const question = { salt: newSalt(), text };
    const newQuestion = { asked_by: caller.principal, asked_at: tx.now, question, answered_at: null, answer: null };
    const entry = { phase: "ask", number: questions.length + 1, text: commitQuestionText(question) } as const;
    return record(tx, caller, row, entry, [...questions, newQuestion]);
  });
}

/**
 * Answers a question, by default the first question without an answer. Repeating an answer changes nothing and returns
 * the action. Throws NOT_THE_SUBMITTER for a key of another agent, and QUESTION_NOT_OPEN if the question does not exist
 * or has another answer.
 */
export function answerQuestion(
  host: CoreHost,
  credential: Credential,
  id: string,
  { number, answer: text }: { number?: number | undefined; answer: string },
): Promise<ActionRow> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "actions:submit");
    const row = await pendingAction(host, tx, id, caller);
    if (!isAgentOfAction(row, caller))
      throw new Refusal(
        "NOT_THE_SUBMITTER",
        "only the key that submitted the action, or a key bound to its agent, can answer",
      );
    const questions = decodeQuestions(row.questions);
    const open = number ?? questions.findIndex(({ answer }) => answer === null) + 1;
    const question = questions[open - 1] ?? (number === undefined ? questions.at(-1) : undefined);
    if (question?.answer?.text === text) return row;
    if (question === undefined || question.answer !== null)
      throw new Refusal(
        ERRORS.notOpen,
        number === undefined
          ? "the action has no question without an answer"
          : `the action has no question ${number} without an answer`,
      );
    const answer = { salt: newSalt(), text };
    const answered = { ...question, answered_at: tx.now, answer };
    const entry = { phase: "answer", number: open, text: commitQuestionText(answer) } as const;
    return record(tx, caller, row, entry, questions.with(open - 1, answered));
  });
}

async function record(
  tx: LedgerTransaction,
  caller: Credential,
  row: ActionRow,
  entry: { phase: "ask" | "answer"; number: number; text: string },
  questions: readonly StoredQuestion[],
): Promise<ActionRow> {
  const by = toActor(caller.key, caller.principal);
  const asked = { type: "question", v: 1, ...actionEntryFields(row, tx.now), ...entry, by } as const;
  return tx.recordChange(row, null, asked, { questions: encodeQuestions(questions) }).row;
}
