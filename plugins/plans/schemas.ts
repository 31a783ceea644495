/** Schemas and errors of plans. */
import { Type, type Static } from "@sinclair/typebox";
import { closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { errorKind, PAGE_QUERY } from "../../src/plugin.ts";
import { ActionBody, ActionRecord, Nonce, PasskeyResponse } from "../actions/api.ts";
import { MAX_PLAN_ACTIONS } from "./action-list.ts";

export const ERRORS = {
  notFound: errorKind("PLAN_NOT_FOUND", 404, "No such plan"),
  voteRequired: errorKind("PLAN_VOTE_REQUIRED", 409, "The action is part of a plan"),
  waiting: errorKind("PLAN_WAITING", 409, "An action ahead of this one in its plan has not ended"),
  stopped: errorKind("PLAN_STOPPED", 409, "The plan has stopped"),
  changed: errorKind("PLAN_CHANGED", 409, "The plan has changed since it was read"),
};

const Ordered = Type.Boolean({
  description: "Each action can start only when all earlier actions have ended. Default: false.",
});
const StopOnFailure = Type.Boolean({
  description:
    "No action can start after another action has failed or has an unknown outcome. The same applies if another action was denied or cancelled or has expired, unless people have since approved the list without it. Default: false.",
});

export const PlanBody = Type.Object(
  {
    actions: Type.Array(ActionBody, {
      minItems: 1,
      maxItems: MAX_PLAN_ACTIONS,
      description: "In the order in which people see them. All must have the same agent.",
    }),
    ordered: Type.Optional(Ordered),
    stop_on_failure: Type.Optional(StopOnFailure),
  },
  closed,
);
export type PlanBody = Static<typeof PlanBody>;

/** Maximum number of plans on a page. Low, because each plan has up to `MAX_PLAN_ACTIONS` actions. */
export const MAX_LISTED_PLANS = 20;

export const PlanQuery = Type.Object(
  {
    agent_id: Type.Optional(Type.String({ maxLength: 256, description: "Only plans of this agent." })),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_LISTED_PLANS,
        default: MAX_LISTED_PLANS,
        description: "Maximum number of plans.",
      }),
    ),
    cursor: PAGE_QUERY.cursor,
  },
  closed,
);

export const PlanParams = Type.Object({ id: Type.String({ format: "uuid", description: "The plan." }) }, closed);

const Position = Type.Integer({ minimum: 1, maximum: MAX_PLAN_ACTIONS, description: "Position in the plan, from 1." });
const Reason = Type.String({ maxLength: 2000, description: "Recorded in the ledger." });

const Strikes = Type.Array(Type.Object({ position: Position, reason: Type.Optional(Reason) }, closed), {
  maxItems: MAX_PLAN_ACTIONS,
  description: "Pending actions to reject, while the others are approved.",
});

/** An approver's vote on a plan. */
const PlanVoteFields = {
  approve: Type.Boolean({ description: "False rejects every pending action of the plan." }),
  reason: Type.Optional(Reason),
  strikes: Type.Optional(Strikes),
};

export const PlanApprovalBody = Type.Object(
  {
    token: Type.String({
      minLength: 1,
      maxLength: 4096,
      description: "The plan's `approval_token`, as returned to this credential.",
    }),
    ...PlanVoteFields,
  },
  closed,
);

export const PlanChallengeBody = Type.Object(PlanVoteFields, closed);

export const SignedPlanBody = Type.Object({ nonce: Nonce, response: PasskeyResponse, ...PlanVoteFields }, closed);

export const PlanSummary = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    agent_id: Type.String(),
    ordered: Ordered,
    stop_on_failure: StopOnFailure,
    submitted_by: textSchema("Id of the key that submitted the plan."),
    created_at: timeSchema("When the plan was submitted."),
    actions: Type.Array(
      Type.Object(
        { id: Type.String(), tool: Type.String(), operation: Type.String(), status: ActionRecord.properties.status },
        closed,
      ),
      { description: "In order." },
    ),
  },
  { title: "PlanSummary", ...closed },
);
export type PlanSummary = Static<typeof PlanSummary>;

export const PlanList = Type.Object({ plans: Type.Array(PlanSummary), next_cursor: orNull(Type.String()) }, closed);

export const PlanRecord = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    agent_id: Type.String(),
    ordered: Ordered,
    stop_on_failure: StopOnFailure,
    digest: textSchema(
      "Digest of the remaining actions, which were not denied or cancelled and have not expired. Each vote contains it. A change of the digest voids earlier votes.",
    ),
    stopped: orNull(
      Type.Object(
        { position: Position, status: textSchema("Status of that action.") },
        { ...closed, description: "The action at which the plan stopped; null if it has not stopped." },
      ),
    ),
    submitted_by: textSchema("Id of the key that submitted the plan."),
    created_at: timeSchema("When the plan was submitted."),
    actions: Type.Array(ActionRecord, { description: "In order." }),
    approval_token: Type.Optional(
      Type.String({ description: "Only for a credential that may vote, while an action of the plan is pending." }),
    ),
    signature_required: Type.Optional(
      Type.Boolean({ description: "With `approval_token`: whether the vote needs a passkey's signature." }),
    ),
  },
  { title: "Plan", ...closed },
);
export type PlanRecord = Static<typeof PlanRecord>;
