/** Finds an approver's question about a pending action, and renders it as text for the agent. */
import { approverName, toSingleLine } from "./refusal.ts";
import type { ActionRecord } from "./action-types.ts";

export type Question = ActionRecord["questions"][number];

/**
 * Returns the first question that the agent has not answered; null if there is no such question.
 * @example
 * const question = openQuestion(await assent.action(id));
 * if (question !== null) await assent.answer(id, answerFor(question.question));
 */
export function openQuestion({ status, questions }: Pick<ActionRecord, "status" | "questions">): Question | null {
  if (status !== "pending_approval") return null;
  return questions?.find(({ answer }) => answer === null) ?? null;
}

/**
 * Returns a sentence that asks the agent the open question; an empty string if there is no open question.
 * @param how instructions that complete "Answer it …"
 * @example
 * questionText(action, `with assent.answer("${action.id}", …)`);
 */
export function questionText(action: ActionRecord, how: string): string {
  const question = openQuestion(action);
  if (question === null) return "";
  const { number, asked_by, question: text } = question;
  return `${approverName(asked_by, action.names)} asks about it (question ${number}): "${toSingleLine(text, 1000)}" Answer it ${how}, truthfully; do not change the call. `;
}
