/** Routes for questions: an approver asks the agent of a pending action, and the agent answers. */
import type { CoreHost } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { buildActionReply, ACTION_RESPONSE } from "./action-record.ts";
import { answerQuestion, askQuestion } from "./ask-agent.ts";
import * as schema from "./schemas.ts";

const ERRORS = [
  "ACTION_NOT_FOUND",
  "ACTION_NOT_PENDING",
  "APPROVAL_EXPIRED",
  "ACTION_ERASED",
  "RECORD_ALTERED",
] as const;

export function questionRoutes(host: CoreHost, tag: string) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/questions",
      tag,
      summary: "Ask the agent a question",
      description: `For an approver of a pending action. The action stays pending until its deadline. Approval tokens that were read before the question, or before its answer, are no longer valid. An action can have at most ${schema.MAX_QUESTIONS} questions. Repeating a question that has no answer yet changes nothing.`,
      scope: "approvals:decide",
      params: schema.IdParams,
      body: schema.QuestionBody,
      bodyLimit: 16_384,
      responses: { 200: ACTION_RESPONSE },
      errors: [...ERRORS, "SELF_APPROVAL", "TOO_MANY_QUESTIONS"],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await askQuestion(host, credential, params.id, body.question), credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/answers",
      tag,
      summary: "Answer a question about an action",
      description:
        "For the key that submitted the action, or a key bound to its agent, while the action is pending. Each question accepts one answer. Repeating the answer changes nothing.",
      scope: "actions:submit",
      params: schema.IdParams,
      body: schema.AnswerBody,
      bodyLimit: 32_768,
      responses: { 200: ACTION_RESPONSE },
      errors: [...ERRORS, "NOT_THE_SUBMITTER", "QUESTION_NOT_OPEN"],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await answerQuestion(host, credential, params.id, body), credential),
    }),
  ];
}
