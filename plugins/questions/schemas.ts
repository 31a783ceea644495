/** Bodies and errors of questions. */
import { errorKind, Type } from "../../src/plugin.ts";
import { MAX_QUESTIONS } from "../actions/api.ts";

export const ERRORS = {
  tooMany: errorKind("TOO_MANY_QUESTIONS", 409, "The action has reached its limit of questions"),
  notOpen: errorKind("QUESTION_NOT_OPEN", 409, "There is no such question without an answer"),
};

export const QuestionBody = Type.Object(
  {
    question: Type.String({
      minLength: 1,
      maxLength: 1000,
      description: "For the agent. The ledger contains a commitment to it.",
    }),
  },
  { additionalProperties: false },
);

export const AnswerBody = Type.Object(
  {
    number: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_QUESTIONS,
        description: "Default: the first question without an answer.",
      }),
    ),
    answer: Type.String({
      minLength: 1,
      maxLength: 2000,
      description: "For the approvers. The ledger contains a commitment to it.",
    }),
  },
  { additionalProperties: false },
);
