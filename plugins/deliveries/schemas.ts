import { Type, type Static } from "@sinclair/typebox";
import { PAGE_QUERY } from "../../src/plugin.ts";

const Time = Type.String({ format: "date-time" });
const Nullable = <T extends ReturnType<typeof Type.String>>(schema: T) => Type.Union([schema, Type.Null()]);
const State = Type.Union(
  (["scheduled", "waiting", "delivered", "dead", "obsolete"] as const).map((state) => Type.Literal(state)),
  {
    description:
      "scheduled: created for a later time. waiting: will be attempted at next_attempt_at. dead: failed permanently, can be retried. obsolete: no longer needed.",
  },
);
const Kind = Type.String({
  description:
    "approval_requested, approval_escalated, approval_reminder, approval_closed, outcome_unknown, break_glass, event, or the name of a notice of a feature, such as stop.",
});

export const DeliveryRecord = Type.Object(
  {
    id: Type.String({
      description: "Id of the message. It is the same for every attempt, so that receivers can detect duplicates.",
    }),
    kind: Kind,
    state: State,
    destination: Type.String({
      description: "Notifier and recipient. Messages to one destination are delivered one at a time.",
    }),
    notifier: Type.String({ description: "Empty if a policy names a channel that is not configured." }),
    recipient: Type.String(),
    channel: Nullable(Type.String({ description: "Channel of a policy; null for feeds." })),
    person: Nullable(
      Type.String({
        description: "Owner for whom the message contains a personal link; null if the recipient is not one person.",
      }),
    ),
    action_id: Nullable(Type.String()),
    seq: Type.Integer({ description: "Sequence number of the ledger entry that caused the delivery." }),
    attempts: Type.Integer(),
    next_attempt_at: Nullable(Time),
    give_up_at: Time,
    last_error: Nullable(
      Type.String({
        description: "Why the delivery failed, or why its destination failed while it waits; null after delivery.",
      }),
    ),
    delivered_at: Nullable(Time),
    created_at: Time,
    updated_at: Time,
  },
  { title: "Delivery", additionalProperties: false },
);
export type DeliveryRecord = Static<typeof DeliveryRecord>;

export const ListQuery = Type.Object(
  {
    state: Type.Optional(State),
    destination: Type.Optional(Type.String({ maxLength: 1000 })),
    action_id: Type.Optional(Type.String({ maxLength: 64 })),
    ...PAGE_QUERY,
  },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;

export const DeliveryList = Type.Object(
  { deliveries: Type.Array(DeliveryRecord), next_cursor: Nullable(Type.String()) },
  { additionalProperties: false },
);
export const DeliveryParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Id of the delivery." }) },
  { additionalProperties: false },
);
