/** The client's methods of approvers: votes, questions to the agent, and changes of a request. */
import type { ApiCalls } from "./api-calls.ts";
import type { ActionRecord, AnswerOptions, ApproveOptions, CallOptions, VoteOptions } from "./action-types.ts";

/** Returns the methods that vote on pending actions and change them. `vote` sends a vote. */
export function approvalCalls(
  { record, readToken, listOf }: ApiCalls,
  vote: (id: string, approve: boolean, options?: ApproveOptions) => Promise<ActionRecord>,
) {
  return {
    approve: (id: string, options?: ApproveOptions) => vote(id, true, options),
    deny: (id: string, options?: VoteOptions) => vote(id, false, options),
    /**
     * Lifts a rejection, so that the same request requires approval again. Requires a key that can approve the action.
     */
    liftRejection: (id: string, { reason, signal }: VoteOptions = {}) =>
      record(id, "POST", "/lift-rejection", { body: { reason }, signal }),
    /** Yields all pending actions, earliest expiry first. */
    approvals: (options?: CallOptions) => listOf("/v1/approvals", {}, options),
    /** Asks the agent of a pending action a question. Requires a key that can approve the action. */
    ask: (id: string, question: string, { signal }: CallOptions = {}) =>
      record(id, "POST", "/questions", { body: { question }, signal, repeatable: true }),
    /**
     * Answers an approver's question about a pending action of this agent: question `number`, or the first question
     * without an answer. `ActionRecord.questions` contains the questions.
     */
    answer: (id: string, answer: string, { number, signal }: AnswerOptions = {}) =>
      record(id, "POST", "/answers", { body: { answer, number }, signal, repeatable: true }),
    /**
     * Changes parameters of a pending action, if its rules allow the change. Reads the caller's approval token first.
     * Another person has to approve the changed request.
     */
    async edit(
      id: string,
      changes: Record<string, string | number | boolean>,
      { reason, signal }: VoteOptions = {},
    ): Promise<ActionRecord> {
      const token = await readToken(id, signal);
      return record(id, "POST", "/edit", { body: { token, changes, reason }, signal });
    },
  };
}
