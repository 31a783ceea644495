/** Questions: an approver asks the agent of a pending action, and the agent answers. */
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { ACTION_RESPONSE, buildActionReply, IdParams, MAX_QUESTIONS } from "../actions/api.ts";
import { answerQuestion, askQuestion } from "./ask.ts";
import { AnswerBody, ERRORS, QuestionBody } from "./schemas.ts";

/** The documentation of the API lists the routes with those of actions. */
const TAG = "actions";

export default defineCorePlugin({
  name: "questions",
  needs: ["actions"],
  errors: ERRORS,
  setup: (host) => ({ routes: questionRoutes(host) }),
});

const ACTION_ERRORS = [
  "ACTION_NOT_FOUND",
  "ACTION_NOT_PENDING",
  "APPROVAL_EXPIRED",
  "ACTION_ERASED",
  "RECORD_ALTERED",
] as const;

function questionRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/questions",
      tag: TAG,
      summary: "Ask the agent a question",
      description: `For an approver of a pending action. The action stays pending until its deadline. Approval tokens that were read before the question, or before its answer, are no longer valid. An action can have at most ${MAX_QUESTIONS} questions. Repeating a question that has no answer yet changes nothing.`,
      scope: "approvals:decide",
      params: IdParams,
      body: QuestionBody,
      bodyLimit: 16_384,
      responses: { 200: ACTION_RESPONSE },
      errors: [...ACTION_ERRORS, "SELF_APPROVAL", ERRORS.tooMany],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await askQuestion(host, credential, params.id, body.question), credential),
    }),
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/answers",
      tag: TAG,
      summary: "Answer a question about an action",
      description:
        "For the key that submitted the action, or a key bound to its agent, while the action is pending. Each question accepts one answer. Repeating the answer changes nothing.",
      scope: "actions:submit",
      params: IdParams,
      body: AnswerBody,
      bodyLimit: 32_768,
      responses: { 200: ACTION_RESPONSE },
      errors: [...ACTION_ERRORS, "NOT_THE_SUBMITTER", ERRORS.notOpen],
      handle: async ({ credential, params, body }) =>
        buildActionReply(host, await answerQuestion(host, credential, params.id, body), credential),
    }),
  ];
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    questions: typeof questionRoutes;
  }
}
